"""Listening for a while to cgroups that come and go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nodescope.quantities import SECOND_NS
from nodescope.sources.cgroups.churn import ChurnEvent, open_watch
from nodescope.sources.places import Places

GRACE_NS = 2 * SECOND_NS  # a release takes some ten milliseconds; on a busy node more
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Heard:
    """For how long, by which way, and what was missed."""

    seconds: float
    end_ns: int
    way: Literal["tracepoints", "scan"]
    lost: int


def listen(places: Places, seconds: float, take: Callable[[list[ChurnEvent]], None]) -> Heard:
    """Hand over what happens in so many seconds, and the releases of a grace after them."""
    watch = open_watch(places)
    try:
        started = time.monotonic_ns()
        end_ns = started + round(seconds * SECOND_NS)
        while (now := time.monotonic_ns()) < end_ns + GRACE_NS:
            time.sleep(min(_PAUSE_S, (end_ns + GRACE_NS - now) / SECOND_NS))
            events = watch.read()
            take([each for each in events if each.time_ns <= end_ns or each.kind == "released"])
        return Heard(seconds, end_ns, watch.way, watch.lost)
    finally:
        watch.close()

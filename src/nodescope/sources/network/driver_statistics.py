"""Meanings of drivers' statistics by their names: no list exists, but conventions do.

A driver may have ten thousand statistics, most of them work: packets by queue.
Those that tell of trouble are known by a word in their names. Of them, some are
an alarm each time they rise: resets and what leads to them, and the limits that
a cloud puts on an instance. Of these, some count what the kernel's log tells of as well, if
it does: the watchdog of 5.10 speaks once per boot, and a log may be filtered or full.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TROUBLE = re.compile(
    r"timeout|expired|missed|reset|starv|exceeded|err|drop|discard|fail|lost|no_buf|"
    r"out_of_buf|bad|crc|link_down|watchdog|stuck|hang"
)
_ALARM = re.compile(
    r"(^|[_.])(tx_timeouts?|wd_expired|missed_tx|total_resets|resets?|suspected_poll_starvation|"
    r"reset_fail|link_down|hang|watchdog)([_.]|$)|_allowance_exceeded$"
)
_KINDS = (
    (re.compile(r"(^|[_.])tx_timeouts?([_.]|$)"), "nic_tx_timeout"),
    (re.compile(r"(^|_)poll_starvation$"), "nic_poll_starved"),
    (re.compile(r"^wd_expired$"), "nic_keepalive_lost"),
    (re.compile(r"^reset_fail"), "nic_reset_failed"),
    # a device's, not those of one ring
    (re.compile(r"^(total_|device_)?resets?(_cnt|_count)?$"), "nic_reset"),
)
_OF_QUEUE = re.compile(r"^(queue_\d+_|[rt]x\d+_|(?:ch|q)\d+_)")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a statistic."""

    trouble: bool
    alarm: str | None  # what its rise is called, whichever queue it is of; None: not worth it
    kind: str | None = None  # the event that the kernel's log would tell of, if it is one


def classify_statistic(name: str) -> Meaning:
    """By the words in its name."""
    alarm = _OF_QUEUE.sub("", name) if _ALARM.search(name) else None
    kind = next((kind for known, kind in _KINDS if known.search(alarm or "")), None)
    return Meaning(alarm is not None or _TROUBLE.search(name) is not None, alarm, kind)

"""Suspects: what people blame first, as one table, and where each is seen not to be the cause.

The table is `suspects.toml`. A suspect that the kernel counts is compared with the time
before; the share of the mechanisms that are of it says how much of a core it had.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from nodescope.diagnosis.evidence_views import view_kernel_flame
from nodescope.diagnosis.finding import RuledOut
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.records.view import Moment, View, around

THROTTLING = "CPU throttling"
ZOMBIES = "zombie memory cgroups"


@dataclass(frozen=True, slots=True)
class Suspect:
    """One thing that people suspect."""

    name: str
    counters: tuple[str, ...] = ()  # of /proc/vmstat
    mechanisms: tuple[str, ...] = ()  # that are of it
    table: str | None = None  # where it is seen, if no counter tells
    view: str | None = None

    def show(self, at_ns: int) -> View:
        """Return the view in which it is seen."""
        if self.counters:
            where = (("name", self.counters[0]),)
            return View("table", around(at_ns, 900), table="memory", where=where)
        if self.table is not None:
            return View("table", around(at_ns, 60), table=self.table)
        return View("zombies", Moment(at_ns))


@cache
def load_suspects() -> dict[str, Suspect]:
    """Return the table, by name."""
    text = (files("nodescope.diagnosis.rules") / "suspects.toml").read_text("utf-8")
    listed = tomllib.loads(text)["suspect"]
    return {
        each["name"]: Suspect(
            each["name"],
            tuple(each.get("counters", ())),
            tuple(each.get("mechanisms", ())),
            each.get("table"),
            each.get("view"),
        )
        for each in listed
    }


def suspect_of_counter(counter: str) -> str | None:
    """Return the suspect that a counter of /proc/vmstat is of."""
    found = (each.name for each in load_suspects().values() if counter in each.counters)
    return next(found, None)


def shares_of_suspects(shares: Mapping[str, float]) -> dict[str, float]:
    """Return how much of a core each suspect had, from the shares of mechanisms."""
    return {
        each.name: sum(shares.get(name, 0.0) for name in each.mechanisms)
        for each in load_suspects().values()
    }


def with_show(ruled_out: RuledOut, held: PeggedCore | None, at_ns: int) -> RuledOut:
    """Return the same with its view: of the pegged core's seconds, or else of the moment."""
    if ruled_out.show is not None:
        return ruled_out  # whoever ruled it out knows better
    return replace(ruled_out, show=_view(ruled_out.name, held, held.to_ns if held else at_ns))


def _view(name: str, held: PeggedCore | None, at_ns: int) -> View:
    suspect = load_suspects().get(name)
    if suspect is not None:
        return suspect.show(at_ns)
    if held is not None and name in {each.name for each in load_mechanisms()}:
        return view_kernel_flame(held)
    if name.startswith("core "):  # held, but serves no queue
        return View("network", Moment(at_ns))
    return View("events", around(at_ns, 60))

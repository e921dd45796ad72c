"""The view in which it is seen that a suspect is not the cause."""

from __future__ import annotations

from dataclasses import replace

from nodescope.diagnosis.case import Held
from nodescope.diagnosis.evidence_views import view_kernel_flame
from nodescope.diagnosis.finding import RuledOut
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.records.view import Moment, View, around

# What people suspect first, and how /proc/vmstat counts it.
_COUNTERS = {
    "page faults": "pgfault",
    "faults that read the disk": "pgmajfault",
    "huge page faults": "thp_fault_alloc",
    "compaction": "compact_stall",
    "direct reclaim": "pgscan_direct",
}


def with_show(ruled_out: RuledOut, held: Held | None, at_ns: int) -> RuledOut:
    """Return the same with its view: of the held core's seconds, or else of the moment."""
    if ruled_out.show is not None:
        return ruled_out  # whoever ruled it out knows better
    return replace(ruled_out, show=_view(ruled_out.name, held, held.to_ns if held else at_ns))


def _view(name: str, held: Held | None, at_ns: int) -> View:
    if name in _COUNTERS:
        where = (("name", _COUNTERS[name]),)
        return View("table", around(at_ns, 900), table="memory", where=where)
    if name == "CPU throttling":
        return View("table", around(at_ns, 60), table="cgroups")
    if name == "zombie memory cgroups":
        return View("zombies", Moment(at_ns))
    if held is not None and name in {each.name for each in load_mechanisms()}:
        return view_kernel_flame(held)
    if name.startswith("core "):  # held, but serves no queue
        return View("network", Moment(at_ns))
    return View("events", around(at_ns, 60))

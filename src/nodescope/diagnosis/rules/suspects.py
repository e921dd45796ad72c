"""By which command it is seen that a suspect is not the cause."""

from __future__ import annotations

from dataclasses import replace

from nodescope.diagnosis.finding import RuledOut
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.diagnosis.showing import around, between, moment
from nodescope.judgement.pegged_cores import PeggedCore

# What people suspect first, and how /proc/vmstat counts it.
_COUNTERS = {
    "page faults": "pgfault",
    "faults that read the disk": "pgmajfault",
    "huge page faults": "thp_fault_alloc",
    "compaction": "compact_stall",
    "direct reclaim": "pgscan_direct",
}
_TABLE = "nodescope export csv --output - --table"


def with_show(ruled_out: RuledOut, held: PeggedCore | None, at_ns: int) -> RuledOut:
    """The same with its command: about the held core's seconds, or else about the moment."""
    if ruled_out.show:
        return ruled_out  # whoever ruled it out knows better
    return replace(ruled_out, show=_command(ruled_out.name, held, held.to_ns if held else at_ns))


def _command(name: str, held: PeggedCore | None, at_ns: int) -> str:
    if name in _COUNTERS:
        return f"{_TABLE} memory --where name={_COUNTERS[name]} {around(at_ns, 900)}"
    if name == "CPU throttling":
        return f"{_TABLE} cgroups {around(at_ns, 60)}"
    if name == "zombie memory cgroups":
        return f"nodescope zombies --at {moment(at_ns)}"
    if held is not None and name in {each.name for each in load_mechanisms()}:
        span = between(held.from_ns, held.to_ns)
        return f"nodescope flame --cpu {held.cpu} --mode kernel {span}"
    if name.startswith("core "):  # held, but serves no queue
        return f"nodescope network --at {moment(at_ns)}"
    return f"nodescope events {around(at_ns, 60)}"

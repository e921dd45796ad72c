"""From a limit of a cgroup to whose limit it was: memory and tasks.

An OOM kill or a rejected fork names its cgroup. The links say whose it is, what the limit
was, how the group grew into it, and how often that happened. If the whole node was short of
memory, the cgroup that grew most, or has most, is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.growth import (
    GrowthBefore,
    describe_growth,
    read_growth,
    read_largest,
    read_memory,
    read_memory_limit,
    read_tasks,
    write_count,
)
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup, plain_path, recorded_path
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.subjects import cgroup_of
from nodescope.quantities import SECOND_NS, format_bytes, format_duration
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.event_details import OomKillDetails
from nodescope.records.trouble_details import CgroupLimitDetails
from nodescope.records.view import View, around
from nodescope.records.witness_tables import LimitRow
from nodescope.sources.cgroups.owner_by_path import find_owner

MEMORY_LIMIT, MEMORY_OF_NODE, TASK_LIMIT = "memory_limit", "memory_of_the_node", "task_limit"
KILLED_BY_OOMD = "killed_by_oomd"
_MEANINGS = {
    MEMORY_LIMIT: "The cgroup used as much memory as it may. The node need not be short of any.",
    MEMORY_OF_NODE: "The node itself was short of memory.",
    KILLED_BY_OOMD: "systemd-oomd kills a group when memory pressure or swap use above it passes "
    "a threshold. The kernel had not run out of memory yet.",
    TASK_LIMIT: "The cgroup had as many tasks as it may: `fork` fails with EAGAIN.",
}
_BY_OOMD = "systemd-oomd"
_REMADE = ("container", "pod")  # have another cgroup each time
_MOST_OF_IT = 0.5  # of what a slice has, in one unit or container: it filled the slice
_MOST_PATHS = 20  # of cgroups that are looked up by name
_OWNERS: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "cgroup": "cgroup",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reached:
    """A limit that was reached, in words."""

    what: str  # `memory` or `tasks`
    path: str
    said: str
    growth: GrowthBefore | None


def follow_cgroup(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add the links from a limit to its owner; None if nothing names the cgroup."""
    path = cgroup_of(symptom)
    if path is None:
        return _follow_node(case, story, symptom)
    plain = recorded_path(case, path, symptom.time_ns)
    reached = (
        _tasks(case, symptom, plain)
        if symptom.kind == "pids_limit"
        else _memory(case, symptom, plain)
    )
    root = owner_of_cgroup(case, plain, symptom.time_ns)
    often = _how_often(case, symptom, root)
    story.links.append(
        Link(
            "limit", plain, f"{reached.said}{often}", 4.5,
            _show(reached, symptom), "usage that stayed below the limit",
            short=_short(reached, symptom),
        )
    )  # fmt: skip
    if root.kind != "cgroup":
        story.links.append(
            Link(
                "owner", root.name, f"{plain} is the cgroup of {root.kind} {root.name}", 4.5,
                View("events", around(symptom.time_ns, 60)),
                "another owner of that cgroup then",
            )
        )  # fmt: skip
    limited = root  # whose limit it is, which another may have filled
    if root.kind == "cgroup":
        root = _add_inside(case, story, symptom, reached) or root
    mechanism = TASK_LIMIT if reached.what == "tasks" else MEMORY_LIMIT
    if symptom.get(OomKillDetails).constraint == _BY_OOMD:
        look = _steps(root, reached, symptom)[:1]
        return Ending(root, KILLED_BY_OOMD, _MEANINGS[KILLED_BY_OOMD], look)
    return Ending(root, mechanism, _MEANINGS[mechanism], _steps(root, reached, symptom, limited))


def _short(reached: _Reached, symptom: Symptom) -> str:
    if symptom.get(OomKillDetails).constraint == _BY_OOMD:
        return "killed by systemd-oomd"
    above = find_owner(reached.path)
    if above is not None and above.kind == "slice":
        return f"the {reached.what} limit of {above.unit}"
    return f"its {reached.what} limit"


# -- memory ----------------------------------------------------------------------


def _memory(case: Case, symptom: Symptom, path: str) -> _Reached:
    told = symptom.get(OomKillDetails)
    growth = read_growth(read_memory(case, path, symptom.time_ns))
    if told.constraint == _BY_OOMD:
        said = f"systemd-oomd killed all of {path}{describe_growth(growth)}"
        return _Reached("memory", path, said, growth)
    limit = told.limit_bytes or read_memory_limit(case, path, symptom.time_ns)
    size = f", {format_bytes(limit)}," if limit is not None else " (its size was not recorded)"
    said = f"the memory limit of {path}{size} was reached"
    if told.usage_bytes is not None and limit is not None and told.usage_bytes < limit:
        said = f"{path} used {format_bytes(told.usage_bytes)} of its {format_bytes(limit)}"
    victim = _victim(told, _whose_victim(case, told, path, symptom.time_ns))
    return _Reached("memory", path, f"{said}{victim}{describe_growth(growth)}", growth)


def _whose_victim(case: Case, told: OomKillDetails, limited: str, at_ns: int) -> str:
    """Return in words whose the killed task was, where the limit is of a group above its own."""
    path = told.task_memcg and recorded_path(case, told.task_memcg, at_ns)
    if not path or path == limited or not path.startswith(f"{limited.rstrip('/')}/"):
        return ""
    return f" of {owner_of_cgroup(case, path, at_ns).title}"


def _add_inside(case: Case, story: Story, symptom: Symptom, reached: _Reached) -> Root | None:
    """Add who has most of what a slice may have; None if nobody has half of it, or none is seen."""
    value = (lambda row: row.memory_bytes) if reached.what == "memory" else (lambda row: row.tasks)
    largest = read_largest(case, symptom.time_ns - SECOND_NS, value, under=reached.path)
    if largest is None or largest.share < _MOST_OF_IT:
        return None
    root = owner_of_cgroup(case, largest.path, symptom.time_ns)
    if root.kind == "cgroup":
        return None
    share = f"{largest.share:.0%} of the growth" if largest.grew else f"{largest.share:.0%}"
    story.links.append(
        Link(
            "owner", root.name,
            f"of what is in {reached.path}, {root.title} has {share}", 1.0 + 3.0 * largest.share,
            View("table", around(symptom.time_ns, 900), table="cgroups",
                 where=(("cgroup", largest.path),)),
            "another one in it that has as much",
        )
    )  # fmt: skip
    return root


def _victim(told: OomKillDetails, whose: str = "") -> str:
    parts = []
    if told.asked_by:
        parts.append(f"{told.asked_by} asked for more")
    if told.comm:
        of = f" with {format_bytes(told.anonymous_bytes)}" if told.anonymous_bytes else ""
        every = ", and every other task of the group" if told.whole_group else ""
        parts.append(f"{told.comm}{whose}{of} was killed{every}")
    return "; " + ", ".join(parts) if parts else ""


# -- tasks -----------------------------------------------------------------------


def _tasks(case: Case, symptom: Symptom, path: str) -> _Reached:
    told = symptom.get(CgroupLimitDetails)
    limit = told.limit or _recorded_limit(case, path, symptom.time_ns)
    size = f", {limit:,}," if limit is not None else " (its size was not recorded)"
    said = f"{path} has as many tasks as it may{size} and forks fail there"
    growth = read_growth(read_tasks(case, path, symptom.time_ns))
    return _Reached("tasks", path, f"{said}{describe_growth(growth, write_count)}", growth)


def _recorded_limit(case: Case, path: str, at_ns: int) -> int | None:
    rows = [row for row in case.state(LimitRow, at_ns) if (row.name, row.scope) == ("pids", path)]
    return rows[-1].most if rows else None


# -- the node --------------------------------------------------------------------


def _follow_node(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """The whole node was short: the cgroup that grew most, or else has most."""
    told = symptom.get(OomKillDetails)
    ending = follow_memory_of_node(
        case, story, symptom, f"the node was short of memory{_victim(told)}; "
    )
    if ending is None and told.task_memcg and plain_path(told.task_memcg) != "/":
        return _follow_victim(case, story, symptom, told)
    return ending


def follow_memory_of_node(case: Case, story: Story, symptom: Symptom, before: str) -> Ending | None:
    """Add the cgroup that has the node's memory, after the words `before`; None if not recorded."""
    at_ns = symptom.time_ns
    largest = read_largest(case, at_ns, lambda row: row.memory_bytes)
    if largest is None:
        story.lacks(
            "memory of cgroups", "who had the node's memory was not recorded",
            "record with the observer `cgroups`", View("doctor"),
        )  # fmt: skip
        return None
    root = owner_of_cgroup(case, largest.path, at_ns)
    story.links.append(
        Link(
            "limit", largest.path,
            f"{before}{largest.describe(case, at_ns, 'memory')}", largest.strength,
            View("table", around(at_ns, 900), table="cgroups",
                 where=(("cgroup", largest.path),)),
            "another cgroup that grew as much",
        )
    )  # fmt: skip
    reached = _Reached("memory", largest.path, "", read_growth(largest.readings))
    steps = _steps(root, reached, symptom, of_node=True)
    return Ending(root, MEMORY_OF_NODE, _MEANINGS[MEMORY_OF_NODE], steps)


def _follow_victim(case: Case, story: Story, symptom: Symptom, told: OomKillDetails) -> Ending:
    """Nothing but the victim is known: the kernel chooses the largest, which is a hint."""
    path = plain_path(told.task_memcg or "")
    root = owner_of_cgroup(case, path, symptom.time_ns)
    story.lacks(
        "memory of cgroups", "who else had the node's memory was not recorded",
        "record with the observer `cgroups`", View("doctor"),
    )  # fmt: skip
    story.links.append(
        Link(
            "limit", path,
            f"the node was short of memory{_victim(told)}; it was in {path}. The kernel kills who "
            "has most, adjusted by preference; others were not recorded", 1.0,
            View("events", around(symptom.time_ns, 60)), "a larger process that was spared",
        )
    )  # fmt: skip
    return Ending(root, MEMORY_OF_NODE, _MEANINGS[MEMORY_OF_NODE])


# -- how often, and what to do ---------------------------------------------------


def _how_often(case: Case, symptom: Symptom, root: Root) -> str:
    """Return how often the same owner reached the same limit in the recording's reach."""
    known = {plain_path(cgroup_of(symptom) or ""): True}
    times = []
    for event in case.events_of(symptom.kind, within=case.reach):
        named = event.get(OomKillDetails).memcg or event.get(CgroupLimitDetails).cgroup
        path = plain_path(named or "")
        if path not in known and root.kind in _REMADE and len(known) < _MOST_PATHS:
            known[path] = owner_of_cgroup(case, path, event.time_ns) == root
        if known.get(path):
            times.append(event.time_ns)
    return describe_often(times)


def describe_often(times: Sequence[int]) -> str:
    """Return how often something happened and how far apart, in words; "" for once."""
    if len(times) < 2:
        return ""
    ordered = sorted(times)
    gaps = [after - before for before, after in pairwise(ordered)]
    over = format_duration(ordered[-1] - ordered[0])
    every = f", every {format_duration(round(median(gaps)))}" if len(times) > 2 else ""
    return f"; {len(times)} times in {over}{every}"


def _show(reached: _Reached, symptom: Symptom) -> View:
    """Return what shows how a cgroup grew; without readings of it, the events around."""
    if reached.growth is None:
        return View("events", around(symptom.time_ns, 900))
    return View("table", around(symptom.time_ns, 900), table="cgroups",
                where=(("cgroup", reached.path),))  # fmt: skip


def _steps(
    root: Root,
    reached: _Reached,
    symptom: Symptom,
    limited: Root | None = None,
    *,
    of_node: bool = False,
) -> tuple[Action, ...]:
    """Return what to do about who reached a limit; `limited` is whose limit it is."""
    if root.kind not in _OWNERS:
        return ()
    target = Target(_OWNERS[root.kind], root.name)
    leaks = reached.growth is not None and reached.growth.shape == "steady"
    thing = "memory" if reached.what == "memory" else "tasks"
    much = "much memory" if reached.what == "memory" else "many tasks"
    why = f"its {thing} grew steadily: find the leak" if leaks else f"what needs so {much}?"
    look = Action("look", target, note=why, view=_show(reached, symptom))
    if of_node:
        return look, Action("add_memory", Target("node"))
    note = "which only delays it while it grows" if leaks else "if it needs as much by right"
    whose = root if limited is None else limited
    limit = Target(_OWNERS[whose.kind], whose.name)
    return look, Action("raise_limit", limit, value=thing, note=note)

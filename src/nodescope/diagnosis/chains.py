"""Chains: from an incident to the core, the task, the mechanism, the state, the source.

Each step looks for the evidence it requires, within its bounds on time. A step that
finds none ends the chain there: what is proven stays, what is missing is named, and
nothing is invented.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from nodescope.analysis.compare import Change, compare
from nodescope.analysis.filter import Filter
from nodescope.analysis.window import SECOND_NS, Window, overlapping
from nodescope.archive.columns import Columns
from nodescope.archive.reader import Segment
from nodescope.diagnosis.case import Case, Held
from nodescope.diagnosis.finding import Chain, Link, Root, RuledOut, Symptom
from nodescope.diagnosis.incidents import NIC_KINDS, Incident
from nodescope.diagnosis.kernel_work import add_mechanism
from nodescope.diagnosis.mechanism import load_mechanisms
from nodescope.diagnosis.origins import find_origins
from nodescope.diagnosis.owners import find_owner
from nodescope.diagnosis.queues import core_of_nic
from nodescope.diagnosis.showing import around, between
from nodescope.diagnosis.states import (
    pressure_link,
    read_zombies,
    zombie_link,
)
from nodescope.diagnosis.story import Story

NIC_LAG_NS = 20 * SECOND_NS  # a held core is no reason for a reset long after
JOB_LAG_NS = 120 * SECOND_NS
BASELINE_NS = 1800 * SECOND_NS
ENA_TIMEOUT_S = 5.0


def build(case: Case, incident: Incident, *, with_baseline: bool) -> tuple[list[Chain], Story]:
    """The chains of an incident, the likeliest first."""
    story = Story()
    nic = _event_links(story, incident)
    if not _core_link(case, story, incident, nic):
        return _chain(story), story
    if not _task_link(case, story, with_baseline=with_baseline):
        return _chain(story), story
    if not add_mechanism(case, story):
        return _to_owner(case, story), story
    return _with_state(case, story), story


def _chain(story: Story, root: Root | None = None) -> list[Chain]:
    if not story.links:
        return []
    if root is None:
        last = story.links[-1]
        kinds = {"core": "core", "task": "process", "mechanism": "process"}
        name = story.comm if last.kind == "mechanism" and story.comm else last.subject
        root = Root(kinds.get(last.kind, last.kind), name)
    return [_make_chain(story, tuple(story.links), root)]


def _make_chain(
    story: Story, links: tuple[Link, ...], root: Root, arithmetic: str | None = None
) -> Chain:
    """A chain, with what is known of its mechanism."""
    of = story.mechanism
    if of is None:
        return Chain(links, root, arithmetic=arithmetic)
    return Chain(links, root, of.name, of.fix, arithmetic, of.meaning, of.check)


def _to_owner(case: Case, story: Story) -> list[Chain]:
    """A chain that comes down to a process goes on to who runs it, if that is known."""
    owner = find_owner(case, story)
    if owner is None:
        return _chain(story, Root("process", story.comm or ""))
    links, root = owner
    story.links += links
    return _chain(story, root)


# -- the event ---------------------------------------------------------------


def _event_links(story: Story, incident: Incident) -> Symptom | None:
    """What was reported; the network's symptom, if that is what it comes down to."""
    nic = next(iter(incident.of(*NIC_KINDS)), None)
    for job in incident.of("job_failed"):
        lag = (job.time_ns - nic.time_ns) / 1e9 if nic else 0.0
        if nic and -5 <= lag <= JOB_LAG_NS / SECOND_NS:
            story.links.append(
                Link(
                    "job", job.subject,
                    f"{job.statement}, {max(lag, 0):.0f} s after {nic.subject} went down", 2.5,
                    f"nodescope events {around(job.time_ns, 60)}",
                    "jobs that fail as often without a reset",
                )
            )  # fmt: skip
            break
    if nic is not None:
        count = len(incident.of(*NIC_KINDS))
        more = f" ({count} messages)" if count > 1 else ""
        story.links.append(
            Link(
                "event", nic.subject, f"{nic.subject}: {nic.statement}{more}", 5.0,
                f"nodescope events {around(nic.time_ns, 30)}", "no such line in the kernel's log",
            )
        )  # fmt: skip
    elif incident.first.kind not in ("core_held", "job_failed"):
        first = incident.first
        story.links.append(
            Link(
                "event", first.subject, first.statement, 4.0,
                f"nodescope events {around(first.time_ns, 30)}", "no such event",
            )
        )  # fmt: skip
    return nic


# -- the core ----------------------------------------------------------------


def _core_link(case: Case, story: Story, incident: Incident, nic: Symptom | None) -> bool:
    """The core that was held, and what it has to do with the event."""
    times = [each.time_ns for each in incident.symptoms]
    starts = [each.from_ns for each in incident.symptoms if each.from_ns is not None]
    window = Window(min(times + starts) - NIC_LAG_NS, max(times) + 2 * SECOND_NS)
    if not case.recorded("cores"):
        story.lacks("per-core time", "no core can be named", "`nodescope record` reads it")
        return False
    least = 2.0 if nic or incident.first.kind != "core_held" else 3.0
    held = case.held_cores(window, least)
    if nic is not None:
        held = [each for each in held if each.from_ns < nic.time_ns]
        chosen = core_of_nic(case, story, incident, nic, held)
    else:
        named = {each.cpu for each in incident.symptoms if each.cpu is not None}
        chosen = max(
            (each for each in held if not named or each.cpu in named),
            key=lambda each: each.seconds,
            default=None,
        )
    if chosen is None:
        story.lacks(
            "a held core",
            "no core was in the kernel for seconds before it: the cause is elsewhere",
            "look at the device, its driver and the link: `nodescope network`",
        )
        return False
    story.held = chosen
    shares = case.shares(Window(chosen.from_ns, chosen.to_ns))
    busy = shares.busy
    node = float(np.nanmean(busy)) if busy.size and not np.isnan(busy).all() else None
    average = f"; the node on average {node:.0%} busy" if node is not None else ""
    enough = ""
    if nic is not None and chosen.seconds >= ENA_TIMEOUT_S - 1:
        enough = f", as long as the {ENA_TIMEOUT_S:.0f} s after which the driver gives up"
    story.links.append(
        Link(
            "core", f"cpu{chosen.cpu}",
            f"core {chosen.cpu} was {chosen.share:.0%} in the kernel for {chosen.seconds:.0f} s"
            f"{enough}{average}",
            3.0 + min(2.0, chosen.seconds / 5),
            f"nodescope cores {between(chosen.from_ns - 5 * SECOND_NS, chosen.to_ns)}",
            "the same event while no core is held",
        )
    )  # fmt: skip
    return True


# -- the task ----------------------------------------------------------------


def _task_link(case: Case, story: Story, *, with_baseline: bool) -> bool:
    """Who was on the core, against who usually is."""
    held = story.held
    assert held is not None
    window = Window(held.from_ns, held.to_ns)
    stacks = case.stacks(window, held.cpu)
    total = sum(each.samples for each in stacks)
    if not total:
        story.lacks(
            "samples", f"nobody knows who was on core {held.cpu}",
            "`nodescope doctor` says why no samples are taken",
        )  # fmt: skip
        return False
    by: Counter[str] = Counter()
    for each in stacks:
        by[each.comm] += each.samples
    comm, samples = by.most_common(1)[0]
    share = samples / total
    if share < 0.5:
        story.lacks(
            "one process", f"core {held.cpu} was shared by many: {', '.join(list(by)[:4])}",
            f"nodescope flame --cpu {held.cpu} {between(held.from_ns, held.to_ns)}",
        )  # fmt: skip
        return False
    story.comm = comm
    change = _against_baseline(case, held, comm) if with_baseline else None
    against = ""
    strength = 2.0 + 2.0 * share
    if change is not None:
        story.p = change.p
        ratio = f"{change.ratio:.1f}×" if change.ratio else "new"
        against = (
            f"; {change.window_share:.1%} of the node's samples then, "
            f"{change.baseline_share:.1%} in the half hour before ({ratio})"
        )
        if change.p is not None:
            strength += min(1.5, max(0.0, -math.log10(max(change.p, 1e-12)) / 4))
    story.links.append(
        Link(
            "task", comm,
            f"{comm} had {share:.0%} of core {held.cpu}'s samples in those seconds{against}",
            strength,
            f"nodescope top --by comm --cpu {held.cpu} {between(held.from_ns, held.to_ns)}",
            f"{comm} as busy in the kernel at other times without harm",
        )
    )  # fmt: skip
    return True


def _against_baseline(case: Case, held: Held, comm: str) -> Change | None:
    """The comm's share of the node, against the half hour before."""
    span = (held.from_ns, held.to_ns)
    before = Window(held.from_ns - BASELINE_NS, held.from_ns - 2 * SECOND_NS)
    window = overlapping(case.segments, Window(*span))
    baseline = overlapping(case.segments, before)
    if not baseline:
        return None
    found = compare(
        [_part(segment, *span) for segment in window],
        [_part(segment, before.from_ns, before.to_ns) for segment in baseline],
        span, (before.from_ns, before.to_ns), Filter(comms=()), listed=0,
    )  # fmt: skip
    if found.windows < 6:
        return None  # too little to call usual
    return next((c for c in found.changes if c.kind == "comm" and c.name == comm), None)


def _part(segment: Segment, from_ns: int, to_ns: int) -> Any:
    return lambda: Columns(segment, from_ns, to_ns)


# -- the state and the source ------------------------------------------------


def _with_state(case: Case, story: Story) -> list[Chain]:
    held, mechanism = story.held, story.mechanism
    assert held is not None
    assert mechanism is not None
    if mechanism.needs == "none":
        return _to_owner(case, story)
    if mechanism.needs == "memory_pressure":
        pressure = pressure_link(case, held.to_ns)
        if pressure is not None:
            story.links.append(pressure)
            if pressure.subject.startswith("/"):
                return _chain(story, Root("cgroup", pressure.subject))
        return _to_owner(case, story)
    zombies = read_zombies(case, held.to_ns)
    if zombies is None:
        story.lacks(
            "memory cgroups", "how many cgroups were walked is not known",
            "record with the observer `memory_cgroups`",
        )  # fmt: skip
        return _chain(story)
    if not zombies.many:
        return _without_zombies(case, story, zombies.dying)
    story.links.append(zombie_link(zombies))
    uptime_s = _uptime(case, held.to_ns)
    origins = find_origins(case, held.to_ns, zombies.dying, uptime_s)
    for table in ("dying_parents", "cgroup_churn", "units", "containers"):
        if not case.recorded(table) and table not in case.observed:
            story.lacks(
                table, "part of where the zombies come from is not known",
                f"record with the observer that fills `{table}`; `nodescope doctor`",
            )  # fmt: skip
    if not origins:
        return _chain(story, Root("state", "zombie memory cgroups"))
    return [
        _make_chain(story, (*story.links, *origin.links), origin.root, origin.arithmetic)
        for origin in origins[:3]
    ]


def _without_zombies(case: Case, story: Story, dying: int) -> list[Chain]:
    """Reclaim goes through the same functions without zombies; then they are not the reason."""
    story.ruled_out.append(
        RuledOut(
            "zombie memory cgroups",
            f"{dying} memory cgroups were dying; ruled out: too few for a walk to cost anything",
        )
    )
    assert story.mechanism is not None
    if story.mechanism.name != "memcg_walk_by_reclaim":
        return _chain(story)
    plain = next(each for each in load_mechanisms() if each.name == "direct_reclaim")
    last = story.links.pop()
    story.mechanism = plain
    story.links.append(
        Link("mechanism", plain.name, f"{story.comm} was {plain.title}", last.strength, last.show,
             last.refute)
    )  # fmt: skip
    return _with_state(case, story)


def _uptime(case: Case, at_ns: int) -> float | None:
    """How long the node had been up: the monotonic clock starts with it."""
    for segment in overlapping(case.segments, Window(at_ns - SECOND_NS, at_ns)):
        start = segment.description.start
        return (start.monotonic_ns + at_ns - start.wall_ns) / SECOND_NS
    return None

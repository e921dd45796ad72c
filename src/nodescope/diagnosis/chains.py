"""Chains: from an incident to the core, the task, the mechanism, the state, the source.

Each step looks for the evidence it requires, within its bounds on time. A step that
finds none ends the chain there: what is proven stays, what is missing is named, and
nothing is invented.
"""

from __future__ import annotations

import math
from collections import Counter

from nodescope.analysis.compare import Change, Comparison
from nodescope.analysis.window import SECOND_NS, Window, overlapping
from nodescope.diagnosis.baseline import change_of, compare_before, describe_change, rose
from nodescope.diagnosis.case import Case, Held
from nodescope.diagnosis.finding import Chain, Link, Root, RuledOut, Symptom
from nodescope.diagnosis.incidents import NIC_KINDS, Incident
from nodescope.diagnosis.kernel_work import add_mechanism
from nodescope.diagnosis.mechanism import load_mechanisms
from nodescope.diagnosis.moments import Standing
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
ENA_TIMEOUT_S = 5.0
BY_TIME_ALONE = 1.5  # nats less for a core that nothing ties to the event but the time
IN_KERNEL = 0.5  # of a busy core's samples: less is no matter of the kernel


def build(case: Case, incident: Incident, *, with_baseline: bool) -> tuple[list[Chain], Story]:
    """The chains of an incident, the likeliest first."""
    story = Story()
    nic = _event_links(story, incident)
    if not _core_link(case, story, incident, nic):
        return _chain(story), story
    held = story.held
    assert held is not None
    found = compare_before(case, Window(held.from_ns, held.to_ns)) if with_baseline else None
    return _follow(case, story, found), story


def build_moment(case: Case, story: Story, standing: Standing) -> list[Chain]:
    """The chain from what stands out at a moment somebody asks about."""
    held, found = standing.held, standing.found
    if held is None:
        story.links.append(_grown_link(standing))
        return _chain(story)
    story.held = held
    story.links.append(_standing_link(case, standing, held))
    if found is None:
        return _follow(case, story, compare_before(case, standing.span))
    if held.share >= IN_KERNEL:
        return _follow(case, story, found)
    return _to_owner(case, story) if _task_link(case, story, found) else _chain(story)


def _follow(case: Case, story: Story, found: Comparison | None) -> list[Chain]:
    """From a core to the task on it, what the kernel did there, and why."""
    if not _task_link(case, story, found):
        return _chain(story)
    if not add_mechanism(case, story):
        return _to_owner(case, story)
    return _with_state(case, story)


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
        _lacks_core(story, incident, nic)
        return False
    story.held = chosen
    said = ""
    if nic is not None and chosen.seconds >= ENA_TIMEOUT_S - 1:
        said = f", as long as the {ENA_TIMEOUT_S:.0f} s after which the driver gives up"
    by_time = nic is None and _names_no_core(incident)
    if by_time:
        said = "; what was reported names no core, so only the time ties them"
    story.links.append(
        Link(
            "core", f"cpu{chosen.cpu}",
            f"core {chosen.cpu} was {chosen.share:.0%} in the kernel for {chosen.seconds:.0f} s"
            f"{said}{_node_average(case, chosen)}",
            3.0 + min(2.0, chosen.seconds / 5) - (BY_TIME_ALONE if by_time else 0.0),
            f"nodescope cores {between(chosen.from_ns - 5 * SECOND_NS, chosen.to_ns)}",
            "the same event while no core is held",
        )
    )  # fmt: skip
    return True


def _names_no_core(incident: Incident) -> bool:
    """Whether the reports say nothing of a core, such as of a task that hangs."""
    reported = [each for each in incident.symptoms if each.kind != "core_held"]
    return bool(reported) and all(each.cpu is None for each in reported)


def _lacks_core(story: Story, incident: Incident, nic: Symptom | None) -> None:
    if nic is not None:
        hint = "look at the device, its driver and the link: `nodescope network`"
    else:
        hint = f"look at what ran: `nodescope flame {around(incident.first.time_ns)}`"
    story.lacks(
        "a held core", "no core was in the kernel for seconds before it: the cause is elsewhere",
        hint,
    )  # fmt: skip


def _node_average(case: Case, held: Held) -> str:
    """What an average over the cores would have shown of it."""
    busy = case.busy_share(Window(held.from_ns, held.to_ns))
    return "" if busy is None else f"; the node on average {busy:.0%} busy"


# -- the task ----------------------------------------------------------------


def _task_link(case: Case, story: Story, found: Comparison | None) -> bool:
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
    change = change_of(found, comm) if found is not None else None
    against = ""
    strength = 2.0 + 2.0 * share
    if found is not None and change is not None:
        against = f"; {describe_change(found, change)}"
        if rose(change):
            # Several events are put together by their p-values; one is judged by its q.
            story.p = change.p
            strength += _surprise(change)
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


def _surprise(change: Change) -> float:
    """What a change is worth: nothing unless it is flagged."""
    if not change.flagged or change.q is None:
        return 0.0
    return min(1.5, -math.log10(max(change.q, 1e-12)) / 4)


# -- a moment ----------------------------------------------------------------


def _standing_link(case: Case, standing: Standing, held: Held) -> Link:
    """A core that did no harm that was reported: worth less than one that did."""
    if standing.found is None:
        said = f"{held.share:.0%} in the kernel for {held.seconds:.0f} s"
        strength = 0.5 + min(1.5, held.seconds / 3)
    else:
        busy = case.busy_share(standing.span, held.cpu)
        how = "busy" if busy is None else f"{busy:.0%} busy"
        said = f"{how} in those {held.seconds:.0f} s, {held.share:.0%} of its samples in the kernel"
        strength = 0.5 + (busy or 0.0)
    usual = f"; {standing.usual}" if standing.usual else ""
    return Link(
        "core", f"cpu{held.cpu}",
        f"core {held.cpu} was {said}{_node_average(case, held)}{usual}", strength,
        f"nodescope cores {between(held.from_ns - 5 * SECOND_NS, held.to_ns)}",
        "cores that are so at other times without harm",
    )  # fmt: skip


def _grown_link(standing: Standing) -> Link:
    """A process that is on many cores, and more than before."""
    found, comm = standing.found, standing.comm
    assert found is not None
    assert comm is not None
    change = change_of(found, comm)
    assert change is not None
    return Link(
        "task", comm, f"{comm} had {describe_change(found, change)}", 0.5 + _surprise(change),
        f"nodescope compare {between(standing.span.from_ns, standing.span.to_ns)}",
        f"{comm} as busy at other times without harm",
    )  # fmt: skip


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
    origins, innocent = find_origins(case, held.to_ns, zombies.dying, uptime_s)
    story.ruled_out += innocent
    for table in ("dying_parents", "cgroup_churn", "units", "containers"):
        if not case.observed(table):
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
            f"{dying} memory cgroups were dying; ruled out because walking so few costs nothing",
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

"""Chains: from an incident to the core, the task, the mechanism, the state, the source.

Each step looks for the evidence it requires, within its bounds on time. A step that
finds none ends the chain there: what is proven stays, what is missing is named, and
nothing is invented.
"""

from __future__ import annotations

import math
from dataclasses import replace

from nodescope.analysis.compare import Change, Comparison
from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.evidence_views import view_cores, view_flame, view_top
from nodescope.diagnosis.finding import Chain, Link, Root, RuledOut, Symptom, exclude_each_other
from nodescope.diagnosis.links.baseline import change_of, compare_before, describe_change, rose
from nodescope.diagnosis.links.by_task import add_owner
from nodescope.diagnosis.links.kept import end_at_standstill, follow_kept
from nodescope.diagnosis.links.kernel_work import add_mechanism
from nodescope.diagnosis.links.origins import find_origins
from nodescope.diagnosis.links.owners import find_owner
from nodescope.diagnosis.links.reported import add_core, add_report, lack_core, node_average
from nodescope.diagnosis.links.states import FEW_ZOMBIES, pressure_link, zombie_link
from nodescope.diagnosis.links.traced import add_traced_task
from nodescope.diagnosis.proposals import is_blamed, propose
from nodescope.diagnosis.rules.calibration import log_odds
from nodescope.diagnosis.rules.mechanism import mechanism_named
from nodescope.diagnosis.rules.suspects import ZOMBIES
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import Incident
from nodescope.diagnosis.symptoms.moments import Standing
from nodescope.diagnosis.symptoms.standstill import MACHINE
from nodescope.diagnosis.ways import choose_lead, follow_way, is_of_core
from nodescope.judgement.core_occupants import MOST_OF_IT
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.judgement.zombie_reading import ZombieReading, read_zombies
from nodescope.recording.window import Window
from nodescope.records.action import TargetName, with_names
from nodescope.records.view import Span, View
from nodescope.wall_time import format_time_of_day

IN_KERNEL = 0.5  # of a busy core's samples: less is no matter of the kernel


def build(case: Case, incident: Incident, *, with_baseline: bool) -> tuple[list[Chain], Story]:
    """The chains of an incident, the likeliest first."""
    story = Story(compared=with_baseline)
    report = add_report(story, incident)
    if incident.first.subject == MACHINE:
        return [_end_chain(story, end_at_standstill(story, incident.first))], story
    if (lead := choose_lead(case, incident)) is not None:
        ending = follow_way(case, story, incident, lead)
        if ending is not None:
            return [_end_chain(story, ending)], story
    if not any(is_of_core(each) for each in incident.symptoms):
        # How a limit was reached is no cause of it.
        return _chain(case, story, Root("event", incident.first.subject)), story
    if not add_core(case, story, incident, report):
        return _without_core(case, story, incident, report), story
    held = story.held
    assert held is not None
    found = compare_before(case, Window(held.from_ns, held.to_ns)) if with_baseline else None
    return _follow(case, story, found), story


def _without_core(
    case: Case, story: Story, incident: Incident, report: Symptom | None
) -> list[Chain]:
    """No core in the kernel explains it: something else that kept one, or the kernel's own word."""
    if report is not None:
        ending = follow_kept(case, story, incident, report)
        if ending is not None:
            return [_end_chain(story, ending)]
        if add_traced_task(case, story, report):
            return _to_owner(case, story) if story.mechanism is None else _with_state(case, story)
    lack_core(case, story, report or incident.first)
    return _chain(case, story)


def _end_chain(story: Story, ending: Ending) -> Chain:
    return Chain(
        tuple(story.links), ending.root, ending.mechanism, meaning=ending.meaning,
        steps=ending.steps, reporter=ending.reporter,
    )  # fmt: skip


def build_moment(case: Case, story: Story, standing: Standing) -> list[Chain]:
    """The chain from what stands out at a moment somebody asks about."""
    held, found = standing.held, standing.found
    if held is None:
        story.links.append(_grown_link(standing))
        return _chain(case, story)
    story.held = held
    story.links.append(_standing_link(case, standing, held))
    if found is None:
        return _follow(case, story, compare_before(case, standing.span))
    if held.share >= IN_KERNEL:
        return _follow(case, story, found)
    return _to_owner(case, story) if _task_link(case, story, found) else _chain(case, story)


def _follow(case: Case, story: Story, found: Comparison | None) -> list[Chain]:
    """From a core to the task on it, what the kernel did there, and why."""
    if not _task_link(case, story, found):
        return _chain(case, story)
    if not add_mechanism(case, story):
        return _to_owner(case, story)
    return _with_state(case, story)


def _chain(case: Case, story: Story, root: Root | None = None) -> list[Chain]:
    if not story.links:
        return []
    if root is None:
        last = story.links[-1]
        kinds = {"core": "core", "task": "process", "mechanism": "process"}
        name = story.comm if last.kind == "mechanism" and story.comm else last.subject
        root = Root(kinds.get(last.kind, last.kind), name)
    return [_make_chain(case, story, tuple(story.links), root)]


def _make_chain(
    case: Case, story: Story, links: tuple[Link, ...], root: Root, arithmetic: str | None = None
) -> Chain:
    """A chain, with what is known of its mechanism and what to do about it."""
    of, at_ns = story.mechanism, story.held.to_ns if story.held else case.window.to_ns
    steps = propose(case, links, root, at_ns)
    if of is None:
        return Chain(links, root, arithmetic=arithmetic, steps=steps)
    proposed = of.fix if is_blamed(links) or of.stop is None else (of.stop, *of.fix)
    names = _known_names(story, links)
    fixes = tuple(with_names(action, names) for action in proposed)
    shown = [action.view for action in fixes]
    check = tuple(view for view in of.check if view not in shown)
    return Chain(links, root, of.name, fixes, arithmetic, of.meaning, check, steps)


def _known_names(story: Story, links: tuple[Link, ...]) -> dict[TargetName, str]:
    """Return by kind what is known by name: the process, and the cgroup at its limit."""
    names: dict[TargetName, str] = {}
    if story.comm:
        names["process"] = story.comm
    for link in links:
        if link.kind == "state" and link.subject.startswith("/"):
            names["cgroup"] = link.subject
    return names


def _to_owner(case: Case, story: Story) -> list[Chain]:
    """A chain that comes down to a process goes on to who runs it, if that is known."""
    owner = find_owner(case, story)
    if owner is None and story.pid is not None and story.held is not None:
        root = add_owner(case, story, story.held.to_ns, story.comm or "", story.pid)
        return _chain(case, story, root)
    if owner is None:
        return _chain(case, story, Root("process", story.comm or ""))
    links, root = owner
    story.links += links
    if root.kind == "unit" and not case.observed("units"):
        story.lacks("units", f"why {root.name} runs is not known", show=View("doctor"))
    return _chain(case, story, root)


# -- the task ----------------------------------------------------------------


def _task_link(case: Case, story: Story, found: Comparison | None) -> bool:
    """Who was on the core, against who usually is."""
    held = story.held
    assert held is not None
    by = case.commands_on(held.window, held.cpu)
    main = by.find_main()
    if main is None:
        story.lacks(
            "samples", f"nobody knows who was on core {held.cpu}",
            "see why no samples were taken", View("doctor"),
        )  # fmt: skip
        return False
    comm, _, share = main
    if share < MOST_OF_IT:
        several = ", ".join(name for name, _ in by.samples.most_common(4))
        story.lacks(
            "one process", f"core {held.cpu} was shared by many: {several}",
            show=view_flame(held),
        )  # fmt: skip
        return False
    story.comm = comm
    change = change_of(found, comm) if found is not None else None
    against = "" if story.compared else "; not compared with the time before, as the first are"
    # A core that others shared is less surely the doing of who had most of it.
    strength = min(2.0 + 2.0 * share, 1.0 + log_odds(share))
    if found is not None and change is not None:
        against = f"; {describe_change(found, change)}"
        if rose(change):
            # Several events are put together by their p-values; one is judged by its q.
            story.p = change.p
            strength += _surprise(change)
    # Like the comparison, this reads the samples: it is done for the first incidents.
    who = case.name_processes(held.window, held.cpu, comm) if story.compared else comm
    story.links.append(
        Link(
            "task", comm,
            f"{who} had {share:.0%} of core {held.cpu}'s samples in those seconds{against}",
            strength,
            view_top(held, "comm"),
            f"{comm} as busy in the kernel at other times without harm",
        )
    )  # fmt: skip
    return True


def _surprise(change: Change) -> float:
    """Return the evidence of a change: 0 unless it is flagged."""
    if not change.flagged or change.q is None:
        return 0.0
    return min(1.5, -math.log10(max(change.q, 1e-12)) / 4)


# -- a moment ----------------------------------------------------------------


def _standing_link(case: Case, standing: Standing, held: PeggedCore) -> Link:
    """A core that did no harm that was reported: worth less than one that did."""
    if standing.found is None:
        said = held.describe()
        strength = 0.5 + min(1.5, held.seconds / 3)
    else:
        busy = case.busy_share(standing.span, held.cpu)
        how = "busy" if busy is None else f"{busy:.0%} busy"
        said = f"{how} in those {held.seconds:.0f} s, {held.share:.0%} of its samples in the kernel"
        strength = 0.5 + (busy or 0.0)
    usual = f"; {standing.usual}" if standing.usual else ""
    return Link(
        "core", f"cpu{held.cpu}",
        f"core {held.cpu} was {said}{node_average(case, held)}{usual}", strength,
        view_cores(held.from_ns, held.to_ns),
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
        View("compare", Span(standing.span.from_ns, standing.span.to_ns)),
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
                return _chain(case, story, Root("cgroup", pressure.subject))
        return _to_owner(case, story)
    zombies = read_zombies(case.recording, held.to_ns)
    if not isinstance(zombies, ZombieReading) or not zombies.tracked:
        story.lacks(
            "memory cgroups", "how many cgroups were walked is not known",
            "record with the observer `memory_cgroups`",
        )  # fmt: skip
        return _chain(case, story)
    dying = zombies.likely_dying or 0
    if dying < FEW_ZOMBIES:
        return _without_zombies(case, story, dying)
    state = zombie_link(zombies, held.to_ns)
    # They grow: a picture of the hours around it ends at another number.
    read_ns = zombies.read_ns or held.to_ns
    counted = f"{state.statement} (read at {format_time_of_day(read_ns)})"
    story.links.append(replace(state, statement=counted))
    origins, innocent = find_origins(case, held.to_ns, zombies)
    story.ruled_out += innocent
    for table in ("dying_parents", "cgroup_churn", "units", "containers"):
        if not case.observed(table):
            story.lacks(
                table, "part of where the zombies come from is not known",
                f"record with the observer that fills `{table}`", View("doctor"),
            )  # fmt: skip
    if not origins:
        return _chain(case, story, Root("state", ZOMBIES))
    return exclude_each_other(
        [
            _make_chain(case, story, (*story.links, *origin.links), origin.root, origin.arithmetic)
            for origin in origins[:3]
        ]
    )


def _without_zombies(case: Case, story: Story, dying: int) -> list[Chain]:
    """Rule zombies out where there are few: the mechanism is then what it is without them."""
    held = story.held
    assert held is not None
    before = Window(held.from_ns - LOOKBACK_NS, held.to_ns)
    story.ruled_out.append(
        RuledOut(
            ZOMBIES,
            f"{dying} memory cgroups were dying; ruled out because walking so few costs nothing",
            absent=case.absence("memory_cgroups", before),
        )
    )
    assert story.mechanism is not None
    if story.mechanism.otherwise is None:
        return _chain(case, story)
    plain = mechanism_named(story.mechanism.otherwise)
    last = story.links.pop()
    story.mechanism = plain
    story.links.append(
        Link("mechanism", plain.name, f"{story.comm} was {plain.title}", last.strength, last.show,
             last.refute)
    )  # fmt: skip
    return _with_state(case, story)

"""Make a plan: proposed actions become steps, guarded, ordered, bound to facts.

Order: what starts and leaks is stopped, kept from coming back, limits and settings are
changed, and only then is freed what was left behind: freeing first would be for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodescope.errors import NodescopeError, SourceError
from nodescope.quantities import HOUR_NS, MINUTE_NS
from nodescope.records.action import Target
from nodescope.records.action_words import describe_action
from nodescope.records.view import View
from nodescope.records.view_forms import render_command
from nodescope.remedy.elsewhere.forms import render_elsewhere
from nodescope.remedy.guard.decision import guard
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Baseline, Plan, PlanStep, Refused, StepName
from nodescope.remedy.proposals import ENDS, Proposal, Proposals
from nodescope.remedy.rests_on.facts import read_boot, read_facts, read_host
from nodescope.remedy.steps.containers import expand_stop_container
from nodescope.remedy.steps.expansion import Expansion, join, refuse
from nodescope.remedy.steps.interrupts import expand_spread_queues
from nodescope.remedy.steps.kernel_values import expand_set_kernel_value
from nodescope.remedy.steps.limits import expand_cap_unit, expand_raise_limit
from nodescope.remedy.steps.storage import expand_free_space, expand_thaw
from nodescope.remedy.steps.units import expand_stop_unit
from nodescope.remedy.steps.zombies import expand_free_zombies

EXPIRES_NS = HOUR_NS

# Earlier kinds come first in a plan.
_ORDER: tuple[tuple[StepName, ...], ...] = (
    ("thaw",),
    ("set_restart_policy", "stop_unit", "stop_container", "disable_unit", "mask_unit"),
    ("set_unit_property", "write_drop_in", "set_container_limit", "set_kernel_value",
     "move_interrupt"),
    ("vacuum_journal",),
    ("reclaim_cgroup",),
    ("delete_files",),
    ("drop_caches",),
)  # fmt: skip
_RANK = {kind: rank for rank, kinds in enumerate(_ORDER) for kind in kinds}
_FREES = frozenset({"reclaim_cgroup", "delete_files", "drop_caches"})
_SILENT = frozenset({"stop_leak"})  # said by the actions that name what leaks


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks of a plan beyond the diagnosis."""

    i_know: frozenset[str] = frozenset()  # names that the guard may be overruled for
    archive: str | None = None
    baselines: Sequence[Baseline] = field(default=())


def make_plan(proposals: Proposals, node: NodeAccess, wishes: Wishes) -> Plan:
    """Return the plan for what was proposed, on the node as it is now."""
    whole = join([_expand(each, node) for each in proposals.taken])
    allowed, refused = _guarded(whole.steps, node, wishes.i_know)
    allowed, useless = _without_useless(allowed, [*whole.refused, *refused])
    if not any(each.action.kind in ENDS for each in proposals.taken):
        useless += _source_unknown(allowed)
    steps = sorted(allowed, key=lambda step: _RANK[step.kind])
    made_ns = time.time_ns()
    plan = Plan(
        node=read_host(node),
        boot=read_boot(node),
        made_ns=made_ns,
        expires_ns=made_ns + EXPIRES_NS,
        rests_on=read_facts(steps, node),
        steps=tuple(steps),
        refused=(*whole.refused, *refused),
        cannot=(*proposals.left_out, *useless, *whole.cannot),
        baselines=tuple(wishes.baselines),
        archive=wishes.archive,
    )
    return replace(plan, elsewhere=render_elsewhere(plan))


def _expand(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the steps of one proposal, or why there are none."""
    action = proposal.action
    if action.kind in _SILENT:
        return Expansion()
    expand = _EXPANSIONS.get(action.kind)
    if expand is None:
        return Expansion(cannot=(f"by hand: {describe_action(action)}",))
    try:
        return expand(proposal, node)
    except (SourceError, NodescopeError) as error:
        if action.kind in ENDS and action.target is not None:  # it runs on: see _without_useless
            return refuse(action.target, f"it cannot be stopped from here: {error}")
        return Expansion(cannot=(f"not planned: {describe_action(action)}: {error}",))


_EXPANSIONS: Mapping[str, Callable[[Proposal, NodeAccess], Expansion]] = {
    "stop_unit": expand_stop_unit,
    "stop_container": expand_stop_container,
    "raise_limit": expand_raise_limit,
    "cap_unit": lambda proposal, node: expand_cap_unit(proposal),
    "set_kernel_value": expand_set_kernel_value,
    "spread_queues": expand_spread_queues,
    "free_zombies": lambda proposal, node: expand_free_zombies(node),
    "thaw": lambda proposal, node: expand_thaw(proposal),
    "free_space": expand_free_space,
}


def _guarded(
    steps: Iterable[PlanStep], node: NodeAccess, i_know: frozenset[str]
) -> tuple[list[PlanStep], list[Refused]]:
    """Return the steps that the guard allows, and what it refuses, each target once."""
    allowed: list[PlanStep] = []
    refused: dict[tuple[str, str | None], Refused] = {}
    for step in steps:
        key = step.target.kind, step.target.name
        if key in refused:
            continue
        verdict = guard(step, node, i_know)
        if verdict is None:
            allowed.append(step)
        else:
            refused[key] = verdict
    for verdict in list(refused.values()):
        for name in _bound_by_trigger(verdict.target, allowed, node):
            why = f"{name}: it goes together with {verdict.target.name}, which is refused"
            bound = Refused(Target("unit", name), why, verdict.override)
            refused.setdefault(("unit", name), bound)
    kept = [each for each in allowed if (each.target.kind, each.target.name) not in refused]
    return kept, list(refused.values())


def _bound_by_trigger(refused: Target, steps: Iterable[PlanStep], node: NodeAccess) -> list[str]:
    """Return the units of steps that a refused unit starts, or that start it.

    A service without its socket or timer, or these without the service, is half a change: what
    is left would fail, or start it again.
    """
    if refused.kind != "unit" or not refused.name:
        return []
    found = []
    for name in dict.fromkeys(each.target.name for each in steps if each.target.kind == "unit"):
        for trigger, started in ((refused.name, name), (name, refused.name)):
            if trigger and name and trigger.endswith((".socket", ".timer", ".path")):
                try:
                    bound = started in node.manager.read_triggers(trigger)
                except SourceError:
                    bound = True  # not seen
                if bound:
                    found.append(name)
    return found


def _without_useless(
    steps: Sequence[PlanStep], refused: Sequence[Refused]
) -> tuple[list[PlanStep], list[str]]:
    """Drop what would only free memory while a source of it runs on."""
    sources = [each.target.name for each in refused if each.target.kind in ("unit", "container")]
    freeing = [step for step in steps if step.kind in _FREES]
    if not sources or not freeing:
        return list(steps), []
    named = ", ".join(name or "it" for name in sources)
    said = f"zombies are not freed while {named} is refused: it would leave as many again"
    return [step for step in steps if step not in freeing], [said]


def _source_unknown(steps: Iterable[PlanStep]) -> list[str]:
    """Say that what leaves zombies behind is not stopped, if the plan frees them."""
    if not any(step.kind in _FREES for step in steps):
        return []
    watch = render_command(View("zombies", watch_ns=MINUTE_NS))
    said = (
        "what leaves the zombies behind is not known by name, so it is not stopped: they may come "
        f"back; `{watch}` shows who makes them"
    )
    return [said]

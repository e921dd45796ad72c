"""A plan as text: every unit, file and setting it would touch, why, and how it is undone."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable

from nodescope.remedy.plan import Plan, PlanStep, Predicted
from nodescope.wall_time import format_moment

WIDTH = 96


def render_plan(plan: Plan, width: int = 0) -> str:
    """Return a plan as a person reads it before signing."""
    room = min(width or WIDTH, WIDTH)
    lines = [f"Plan {plan.id} for {plan.node}, valid until {format_moment(plan.expires_ns)}"]
    if not plan.steps:
        lines += ["", "Nothing to do: no step would help, or none is allowed."]
    for number, step in enumerate(plan.steps, 1):
        lines += ["", *_render_step(number, step, room)]
    if plan.refused:
        lines += ["", "Refused:"]
        for each in plan.refused:
            more = f" (`--i-know {each.override}` overrules this)" if each.override else ""
            called = f"{each.target.kind} {each.target.name or ''}".rstrip()
            reason = each.reason.removeprefix(f"{each.target.name}: ")
            lines += _wrap(f"{called}: {reason}{more}", room, "  ")
    if plan.cannot:
        lines += ["", "Not in this plan:"]
        lines += [line for each in plan.cannot for line in _wrap(each, room, "  ")]
    if plan.elsewhere:
        forms = ", ".join(plan.elsewhere)
        lines += ["", f"The same change for review (`--elsewhere FORM` prints one): {forms}"]
    return "\n".join(lines)


def _render_step(number: int, step: PlanStep, room: int) -> list[str]:
    head = f"{number}. {describe_step_kind(step)}"
    lines = [*_wrap(head, room, "", "   ")]
    lines += _wrap(f"why:     {step.why}", room, "   ", " " * 12)
    for number_, change in enumerate(step.changes):
        lines += _wrap(f"{'changes: ' if not number_ else ' ' * 9}{change}", room, "   ", " " * 12)
    for each in step.predicts:
        lines += _wrap(f"expect:  {describe_predicted(each)}", room, "   ", " " * 12)
    lines += _wrap(f"by hand: {shlex.join(step.command)}", room, "   ", " " * 12)
    undo = "cannot be undone" if not step.reversible else step.undo
    lines += _wrap(f"undo:    {undo}", room, "   ", " " * 12)
    if step.consent:
        lines.append(f"   needs:   --consent {shlex.quote(step.consent)}")
    return lines


def describe_step_kind(step: PlanStep) -> str:
    """Return a step in one line: the verb and what it acts on."""
    name = step.target.name or "the node"
    return _HEADS[step.kind].format(**{**step.arguments, "name": name})


_HEADS = {
    "stop_unit": "stop {name}",
    "disable_unit": "disable {name}",
    "mask_unit": "keep {name} from being started by anything",
    "set_unit_property": "set {property} of {name}",
    "write_drop_in": "write a drop-in for {name}",
    "stop_container": "stop container {name}",
    "set_restart_policy": "set the restart policy of container {name} to {policy}",
    "set_container_limit": "raise the {limit} limit of container {name}",
    "reclaim_cgroup": "reclaim page cache below {name}",
    "delete_files": "delete the files in {name} that pin zombies",
    "drop_caches": "drop the page cache of the whole node",
    "set_kernel_value": "set {name} to {value}",
    "move_interrupt": "serve interrupt {irq} ({name}) by core {cores}",
    "thaw": "thaw {name}",
    "vacuum_journal": "remove archived journal files on {name}",
}


def describe_predicted(predicted: Predicted) -> str:
    """Return a prediction with its range and what it was derived from."""
    what = predicted.what.replace("_", " ")
    if not predicted.amount:
        return f"no {what}: {predicted.because}"
    low, high = round(predicted.low), round(predicted.high)
    return f"{round(predicted.amount):,} {what} freed ({low:,} to {high:,}): {predicted.because}"


def _wrap(text: str, room: int, first: str, rest: str = "    ") -> Iterable[str]:
    return textwrap.wrap(
        text, room, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip

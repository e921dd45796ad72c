"""A comparison as a sentence, as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.analysis.compare import ENOUGH_WINDOWS, Change, Comparison, main_changes
from nodescope.pictures.colour import Colour
from nodescope.pictures.terminal import Terminal
from nodescope.pictures.text import fit, percent, visible
from nodescope.quantities import format_count, format_duration
from nodescope.records.json import Json

_INK: dict[str, Colour] = {
    "new": (230, 90, 60),
    "grown": (230, 150, 50),
    "shrunk": (90, 150, 230),
    "gone": (120, 130, 160),
}
CERTAIN = 0.001  # of q, and no baseline window as extreme
MOST_PARTS = 6  # cores and functions told of one process


def compare_document(changes: list[Change], windows: int) -> list[dict[str, Json]]:
    """One object per feature; `baseline` is for a window of the same length."""
    return [
        {
            "kind": each.kind,
            "name": each.name,
            "window": each.window,
            "baseline": round(each.baseline, 3),
            "ratio": None if each.ratio is None else round(each.ratio, 4),
            "p": each.p,
            "status": each.status,
            "q": each.q,
            "extreme": f"{each.as_extreme} of {windows}",
            "flagged": each.flagged,
            "stands_out": each.stands_out,
            "window_share": round(each.window_share, 6),
            "baseline_share": round(each.baseline_share, 6),
        }
        for each in changes
    ]


def summarise_comparison(comparison: Comparison) -> str:
    """Return what changed, in one sentence."""
    flagged = [each for each in comparison.changes if each.flagged]
    if comparison.method == "none":
        return "There is nothing to compare with; this is what ran."
    if flagged:
        return f"{_sum_up(flagged, comparison.windows)}."
    standing_out = [each for each in comparison.changes if each.stands_out]
    if not standing_out:
        return "Nothing differs beyond what the baseline does by itself."
    windows = format_count(comparison.windows, "baseline window")
    largest = _sum_up(standing_out, comparison.windows)
    return f"Nothing is certain with {windows}; the largest difference: {largest}."


def _sum_up(changes: Sequence[Change], windows: int) -> str:
    """Return the change that matters most: by how much, where, and how often it was so before."""
    most = max(
        changes,
        key=lambda each: (each.kind == "comm", each.window_share - each.baseline_share),
    )
    if most.kind != "comm" or most.window_share < most.baseline_share:
        most = max(changes, key=lambda each: abs(each.window_share - each.baseline_share))
    was = "none" if not most.baseline else percent(most.baseline_share)
    times = "" if not most.share_ratio else f" ({_times(most.share_ratio)})"
    text = (
        f"{_spoken(most)} had {percent(most.window_share)} of the samples instead of {was}{times}"
    )
    inside = [] if most.kind != "comm" else main_changes(
        (each for each in changes if each.kind == "function"
         and each.name.startswith(f"{most.name};") and each.status in ("new", "grown")), 1
    )  # fmt: skip
    if inside:
        text += f", in {visible(inside[0][0].name.partition(';')[2])}"
    cores = [
        each
        for each in changes
        if each.kind == "core"
        and each.name.endswith(f";{most.name}")
        and each.window_share > each.baseline_share
    ]
    if cores and cores[0].window >= most.window / 2:
        text += f", on {cores[0].name.partition(';')[0]}"
    extreme = f"{most.as_extreme} of {windows} baseline windows had as "
    return f"{text}: {extreme}{'much' if most.window_share > most.baseline_share else 'little'}"


def render_comparison(comparison: Comparison, terminal: Terminal, limit: int = 20) -> str:
    """The sentence, then a group for each process that changed, widest first."""
    lines = [
        terminal.bold(summarise_comparison(comparison)),
        terminal.faint(_counted(comparison)),
    ]
    groups = _group(main_changes(comparison.changes, 0))
    if not groups and comparison.changes:
        title = "the largest differences, none of them certain:"
        lines += ["", terminal.faint("what ran most:" if comparison.method == "none" else title)]
        groups = [_ChangeGroup((each, 0), []) for each in comparison.changes[: min(limit or 8, 8)]]
    if groups:
        lines += ["", *_table(groups[: limit or None], comparison, terminal)]
    if limit and len(groups) > limit:
        lines.append(terminal.faint(f"… {len(groups) - limit} more: --limit 0 shows all"))
    return "\n".join(lines)


def _counted(comparison: Comparison) -> str:
    """Return how many samples are compared with how many of as much time, by how many windows."""
    here = f"{format_count(comparison.samples, 'sample')} in this window"
    if not comparison.windows:
        return here
    windows = (
        f"{format_count(comparison.windows, 'window')} of {format_duration(comparison.window_ns)}"
    )
    mean = f"{comparison.baseline_samples:,.0f}"
    return (
        f"{here}, {mean} in as much baseline time ({windows}); {comparison.tests:,} things compared"
    )


def certainty_of(change: Change, comparison: Comparison) -> str:
    """Return how sure a change is: certain, likely, or a hint."""
    if not change.flagged or comparison.method != "negative binomial" or change.q is None:
        return "hint"
    few = comparison.windows < ENOUGH_WINDOWS
    return "likely" if few or change.q > CERTAIN or change.as_extreme else "certain"


@dataclass(frozen=True, slots=True)
class _ChangeGroup:
    """One process that changed, with the cores and functions in which it did.

    Numbers beside changes count the callers that changed with a function.
    """

    first: tuple[Change, int]
    parts: list[tuple[Change, int]]


def _group(shown: Sequence[tuple[Change, int]]) -> list[_ChangeGroup]:
    """Put what is told of one process together; a kernel function alone if no process has it."""
    of_process: dict[str, list[tuple[Change, int]]] = {}
    for change, callers in shown:
        process = _process_of(change) or _main_process(change, shown)
        of_process.setdefault(process or f" {change.name}", []).append((change, callers))
    groups = []
    for process, listed in of_process.items():
        told = [each for each in listed if each[0].kind != "kernel"] or listed
        first = next((each for each in told if each[0].kind == "comm"), told[0])
        parts = [each for each in told if each is not first]
        groups.append(_ChangeGroup(first, parts[:MOST_PARTS] if process.strip() else []))
    return groups


def _process_of(change: Change) -> str | None:
    if change.kind == "comm":
        return change.name
    if change.kind == "core":
        return change.name.partition(";")[2]
    return change.name.partition(";")[0] if change.kind == "function" else None


def _main_process(kernel: Change, shown: Sequence[tuple[Change, int]]) -> str | None:
    """Return the process that has most of what changed in a kernel function."""
    for change, _ in shown:
        alike = change.kind == "function" and change.name.partition(";")[2] == kernel.name
        if alike and abs(_moved(change)) >= abs(_moved(kernel)) / 2:
            return change.name.partition(";")[0]
    return None


def _moved(change: Change) -> float:
    return change.window_share - change.baseline_share


def _table(groups: Sequence[_ChangeGroup], comparison: Comparison, terminal: Terminal) -> list[str]:
    head = f"{'':<7}{'share':>8}{'before':>9}{'times':>8}  what, and how sure"
    if comparison.method == "none":
        head = f"{'':<7}{'share':>8}{'':>17}  what"
    lines = [terminal.faint(head)]
    width = max(terminal.width - 34, 24)
    for group in groups:
        first, callers = group.first
        sure = "" if comparison.method == "none" else certainty_of(first, comparison)
        name = fit(_named(first, callers, whole=True), width - len(sure) - 2)
        lines.append(f"{_figures(first, terminal)}  {name}  {terminal.faint(sure)}".rstrip())
        for change, beside in group.parts:
            part = fit(_named(change, beside, whole=first.kind != "comm"), width - 2)
            lines.append(f"{_figures(change, terminal)}    {part}")
    return lines


def _figures(change: Change, terminal: Terminal) -> str:
    if change.status == "unknown":
        return f"{'':<7}{percent(change.window_share):>8}{'':>17}"
    before = "–" if not change.baseline else percent(change.baseline_share)
    now = "–" if not change.window else percent(change.window_share)
    times = "" if not change.share_ratio else _times(change.share_ratio)
    status = terminal.paint(f"{change.status:<7}", _INK[change.status])
    return f"{status}{now:>8}{before:>9}{times:>8}"


def _named(change: Change, callers: int, *, whole: bool) -> str:
    """Return a change's name; within its process without the process's."""
    name, rest = change.name, change.name.partition(";")
    if change.kind == "core":
        name = f"{rest[2]} on {rest[0]}" if whole else f"on {rest[0]}"
    elif change.kind == "function":
        name = f"{rest[0]} in {rest[2]}" if whole else f"in {rest[2]}"
    elif change.kind == "kernel":
        name = f"{name}, in any process"
    others = "" if not callers else f" and {callers} caller{'s' if callers > 1 else ''}"
    return f"{visible(name)}{others}"


def _spoken(change: Change) -> str:
    return _named(change, 0, whole=True)


def _times(ratio: float) -> str:
    return f"×{ratio:.0f}" if ratio >= 9.95 else f"×{ratio:.2g}"

"""A comparison as a sentence, as a table, and as JSON."""

from __future__ import annotations

from nodescope.analysis.compare import Change, Comparison, main_changes
from nodescope.pictures.colour import Colour
from nodescope.pictures.terminal import Terminal
from nodescope.pictures.text import columns_of, fit, pad, percent, visible
from nodescope.quantities import format_duration
from nodescope.records.json import Json

_INK: dict[str, Colour] = {
    "new": (230, 90, 60),
    "grown": (230, 150, 50),
    "shrunk": (90, 150, 230),
    "gone": (120, 130, 160),
}
_KINDS = {"comm": "process", "function": "function", "kernel": "kernel", "core": "core"}


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
            "window_share": round(each.window_share, 6),
            "baseline_share": round(each.baseline_share, 6),
        }
        for each in changes
    ]


def summarise_comparison(comparison: Comparison) -> str:
    """What changed, in one sentence."""
    flagged = [each for each in comparison.changes if each.flagged]
    if comparison.method == "none":
        return "There is nothing to compare with; this is what ran."
    if not flagged:
        return "Nothing differs beyond what the baseline does by itself."
    most = max(
        flagged,
        key=lambda each: (each.kind == "comm", each.window_share - each.baseline_share),
    )
    if most.kind != "comm" or most.window_share < most.baseline_share:
        most = max(flagged, key=lambda each: abs(each.window_share - each.baseline_share))
    was = "none" if not most.baseline else percent(most.baseline_share)
    times = "" if not most.ratio else f" ({_times(most.ratio)})"
    text = (
        f"{_spoken(most)} had {percent(most.window_share)} of the samples instead of {was}{times}"
    )
    inside = [] if most.kind != "comm" else main_changes(
        (each for each in flagged if each.kind == "function"
         and each.name.startswith(f"{most.name};") and each.status in ("new", "grown")), 1
    )  # fmt: skip
    if inside:
        text += f", in {visible(inside[0][0].name.partition(';')[2])}"
    cores = [
        each
        for each in flagged
        if each.kind == "core"
        and each.name.endswith(f";{most.name}")
        and each.window > each.baseline
    ]
    if cores and cores[0].window >= most.window / 2:
        text += f", on {cores[0].name.partition(';')[0]}"
    extreme = f"{most.as_extreme} of {comparison.windows} baseline windows had as "
    return f"{text}: {extreme}{'much' if most.window > most.baseline else 'little'}."


def render_comparison(comparison: Comparison, terminal: Terminal, limit: int = 20) -> str:
    """The sentence, then the changes that count, widest first."""
    length = format_duration(comparison.window_ns)
    against = f"{comparison.windows} windows of {length}" if comparison.windows else "nothing"
    lines = [
        terminal.bold(summarise_comparison(comparison)),
        terminal.faint(
            f"{comparison.samples:,} samples against {against} "
            f"({comparison.baseline_samples:,.0f} in a window as long); "
            f"{comparison.tests:,} things compared"
        ),
    ]
    shown = main_changes(comparison.changes, limit)
    if not shown:
        shown = [(each, 0) for each in comparison.changes[: min(limit or 8, 8)]]
        if shown:
            lines += ["", terminal.faint("the largest differences, none of them certain:")]
    if shown:
        lines += ["", *_table(shown, comparison, terminal)]
    return "\n".join(lines)


def _table(
    shown: list[tuple[Change, int]], comparison: Comparison, terminal: Terminal
) -> list[str]:
    names = [_named(change, callers) for change, callers in shown]
    width = min(max(map(columns_of, names)), max(terminal.width - 65, 16))
    head = f"{'':<7}{'share':>8}{'before':>9}{'times':>8}  {'what':<9}{pad('', width)}  as extreme"
    lines = [terminal.faint(head.rstrip())]
    for (change, _), name in zip(shown, names, strict=True):
        before = "–" if not change.baseline else percent(change.baseline_share)
        now = "–" if not change.window else percent(change.window_share)
        times = "" if not change.ratio else _times(change.ratio)
        sure = f"{change.as_extreme} of {comparison.windows}"
        if change.q is not None:
            sure += f", q {_small(change.q)}"
        status = terminal.paint(f"{change.status:<7}", _INK[change.status])
        lines.append(
            f"{status}{now:>8}{before:>9}{times:>8}  {_KINDS[change.kind]:<9}"
            f"{pad(fit(name, width), width)}  {sure}".rstrip()
        )
    return lines


def _named(change: Change, callers: int) -> str:
    others = "" if not callers else f" +{callers} caller{'s' if callers > 1 else ''}"
    return f"{visible(change.name)}{others}"


def _spoken(change: Change) -> str:
    return visible(change.name)


def _times(ratio: float) -> str:
    return f"×{ratio:.0f}" if ratio >= 9.95 else f"×{ratio:.2g}"


def _small(q: float) -> str:
    if q < 1e-12:
        return "<1e-12"
    return f"{q:.2f}" if q >= 0.01 else f"{q:.0e}"

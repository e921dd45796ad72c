"""What was measured, kept as a small JSON file from which RESULTS.md is rendered.

Each benchmark replaces its own entry, so that runs of single benchmarks add up.
An entry carries its own date, machine and commit: figures of different days
stand side by side, and each says when and on what it was taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STATE = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("RESULTS.md")
# The lab's table stands in the docs as well, between these two lines.
DOCS = Path(__file__).parents[1] / "docs/diagnosis.md"
_BEGIN, _END = "<!-- written by `make bench` -->", "<!-- until here -->"


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise beside what was measured. `passed` is None where it is only for information."""

    name: str
    limit: str
    measured: str
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of figures, already formatted."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found."""

    bars: tuple[Bar, ...]
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)  # raw, small


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. `peers` are commands by name, with `{seconds}` and `{folder}` to fill in."""

    quick: bool
    peers: dict[str, str]


def read_state() -> dict[str, Any]:
    """What earlier runs found, by benchmark."""
    if not STATE.exists():
        return {}
    state: dict[str, Any] = json.loads(STATE.read_text())
    return state


def make_entry(
    title: str, summary: str, facts: dict[str, Any], seconds: float, result: Result
) -> dict[str, Any]:
    """A result as it stands in the state file."""
    return {"title": title, "summary": summary, **facts, "seconds": round(seconds)} | asdict(result)


def save(state: dict[str, Any], order: Sequence[str]) -> None:
    """Write the state and the page."""
    text = json.dumps(state, indent=1, sort_keys=True, ensure_ascii=False)
    STATE.write_text(text + "\n")
    PAGE.write_text(render_page(state, order))
    if "lab" in state:
        DOCS.write_text(render_docs(DOCS.read_text(), state["lab"]))


def render_docs(text: str, entry: dict[str, Any]) -> str:
    """The page with the lab's tables in their place."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = [f"{entry['date']}, {entry['machine']}.", *render_tables(entry)]
    return before + "\n".join((_BEGIN, "", *lines, "", _END)) + after


def render_page(state: dict[str, Any], order: Sequence[str]) -> str:
    """RESULTS.md: the bars first, then each benchmark with its tables."""
    lines = [
        "# What Nodescope costs and how it compares",
        "",
        "Written by `make bench`; do not edit. How each figure is taken, and how it could be",
        "fooled, stands at the top of its module in `benchmarks/`.",
        "",
        "| | bar | at most / at least | measured | |",
        "|---|---|---|---|---|",
    ]
    for name in order:
        entry = state.get(name)
        if entry is None:
            lines.append(f"| {name} | | | not measured yet | |")
            continue
        for bar in entry["bars"]:
            cells = (name, bar["name"], bar["limit"], bar["measured"], verdict(bar["passed"]))
            lines.append(f"| {' | '.join(cells)} |")
    for name in order:
        if name in state:
            lines += ["", *render_entry(name, state[name])]
    return "\n".join(lines) + "\n"


def render_entry(name: str, entry: dict[str, Any]) -> list[str]:
    """One benchmark: when and where it ran, its tables and notes."""
    taken = (
        f"{entry['date']}, {entry['seconds']} s, at {entry['commit']}. {entry['machine']}. "
        f"{entry['software']}. Load average of the minute before: {entry['load']}."
    )
    lines = [
        f"## {entry['title']}",
        "",
        f"{entry['summary']} ([{name}.py]({name}.py))",
        "",
        taken,
    ]
    return lines + render_tables(entry)


def render_tables(entry: dict[str, Any]) -> list[str]:
    """Its tables and notes."""
    lines = []
    for grid in entry["grids"]:
        lines += ["", f"**{grid['title']}**", ""] if grid["title"] else [""]
        lines.append(f"| {' | '.join(grid['head'])} |")
        lines.append("|" + "---|" * len(grid["head"]))
        lines += [f"| {' | '.join(row)} |" for row in grid["rows"]]
    if entry["notes"]:
        lines += ["", *(f"- {note}" for note in entry["notes"])]
    return lines


def verdict(passed: bool | None) -> str:
    """A word for the last column."""
    return "" if passed is None else "pass" if passed else "**miss**"

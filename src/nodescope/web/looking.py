"""Where a piece of evidence is to be looked at: the command that shows it, as a place on the page.

Every link of a diagnosis names the command that shows it. The same options are a window,
a filter and a view here.
"""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import Any

from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS, parse_duration_ns
from nodescope.web.parameters import parse_moment
from nodescope.web.question import to_ms

VIEWS = {
    "cores": "timeline",
    "events": "events",
    "heatmap": "heatmap",
    "flame": "flame",
    "top": "flame",
    "compare": "flame",
    "network": "facts",
    "zombies": "facts",
    "audit": "facts",
}
_FILTERS = ("cpu", "comm", "frame", "mode", "cgroup", "pid")
_AROUND_NS = 15 * SECOND_NS


def find_look(command: str, at_ns: int) -> dict[str, Any]:
    """The place on the page; around the symptom's moment where the command names none."""
    options = _parse(command)
    look: dict[str, Any] = {"view": VIEWS.get(options.pop("", ""), "timeline")}
    from_ns, to_ns = _window(options, at_ns)
    if look["view"] == "facts" and "to" not in options:
        to_ns = (from_ns + to_ns) // 2  # facts are those of the end: as it was at that moment
    look |= {"from_ms": to_ms(from_ns), "to_ms": to_ms(to_ns)}
    look |= {name: options[name] for name in _FILTERS if name in options}
    return look


def _parse(command: str) -> dict[str, str]:
    """Options by name, and the command itself as ``; all of ours take one value."""
    try:
        words = shlex.split(command)
    except ValueError:  # a name in it may hold anything
        words = command.split()
    found = {"": words[1] if len(words) > 1 else ""}
    for word, value in pairwise([*words, ""]):
        if word.startswith("--") and value and not value.startswith("--"):
            found[word[2:].replace("-", "_")] = value
    return found


def _window(options: dict[str, str], at_ns: int) -> tuple[int, int]:
    try:
        if "from" in options and "to" in options:
            return parse_moment(options["from"]), parse_moment(options["to"])
        around = parse_duration_ns(options["around"]) if "around" in options else _AROUND_NS
        middle = parse_moment(options["at"]) if "at" in options else at_ns
    except UsageError:
        around, middle = _AROUND_NS, at_ns
    return max(0, middle - around), middle + around

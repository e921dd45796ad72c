"""A flame graph as nested boxes, in the shape that its JSON has."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class FlameNode(TypedDict):
    """A function called along one path, with those it called; the widest come first."""

    name: str
    value: int  # samples, its callees' included
    children: list[FlameNode]
    module: NotRequired[str]  # not known of groups and of the root
    kernel: NotRequired[bool]
    before: NotRequired[float]  # samples that a window as long had before

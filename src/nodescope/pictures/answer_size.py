"""How large an answer in JSON may be, and what of a list fits: for `--json` and for the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nodescope.pictures.text import LONGEST_NAME

LARGEST = 2_000_000  # bytes

Document = dict[str, Any]


def size(document: Any) -> int:
    """Return the bytes of a document as it is written."""
    return len(json.dumps(document, separators=(",", ":")))


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name, not longer than any answer repeats."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def keep_fitting(documents: Sequence[Document], room: int = LARGEST) -> list[Document]:
    """Return as many of the first ones as fit into a list of `room` bytes."""
    room -= len("[]")
    for number, document in enumerate(documents):
        room -= size(document) + 1
        if room < 0:
            return list(documents[:number])
    return list(documents)


def fit_list(documents: Sequence[Document]) -> tuple[list[Document], str | None]:
    """Return what fits into an answer, and a remark if that is not all."""
    kept = keep_fitting(documents)
    left = len(documents) - len(kept)
    if not left:
        return kept, None
    return kept, f"{left:,} further ones are left out: an answer ends at {LARGEST // 10**6} MB"

"""Documents as bytes, none larger than an answer may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from nodescope.web.question import Reply

LARGEST = 2_000_000  # bytes

Document = TypeVar("Document")


def json_reply(document: object) -> Reply:
    """A JSON document; names are anybody's text, so everything beyond ASCII is escaped."""
    return Reply(json.dumps(document, separators=(",", ":"), allow_nan=False).encode())


def fitting(documents: Sequence[Document], room: int = LARGEST) -> list[Document]:
    """Return as many of the first ones as fit."""
    kept = []
    for document in documents:
        room -= len(json.dumps(document, separators=(",", ":"))) + 1
        if room < 0:
            break
        kept.append(document)
    return kept


def cut(text: str, longest: int = 512) -> str:
    """A name, not longer than any answer repeats."""
    return text if len(text) <= longest else text[: longest - 1] + "…"

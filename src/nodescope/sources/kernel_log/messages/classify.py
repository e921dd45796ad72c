"""Picks the rule that reads a line.

Nearly all lines say nothing of the kind, so a single search for all needles at once comes
first: a tree of them, as one expression. Each is cut at its letter that is the rarest in
logs, so that the search seldom has to look past one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from nodescope.sources.kernel_log.messages import (
    cores,
    ena,
    gpu,
    hardware,
    kernel_faults,
    limits,
    memory,
    network,
    storage,
)
from nodescope.sources.kernel_log.messages.message import KernelMessage, MessageRule, read_by

RULES: tuple[MessageRule, ...] = (
    *network.RULES,
    *ena.RULES,
    *cores.RULES,
    *memory.RULES,
    *storage.RULES,
    *kernel_faults.RULES,
    *limits.RULES,
    *gpu.RULES,
    *hardware.RULES,
)

_LONGEST = 2048  # the kernel cuts its own lines at half of that


def classify(text: str) -> KernelMessage | None:
    """Return the meaning of a kernel log line; None for routine lines."""
    if _ANY.search(text) is None:
        return None
    for needle, rules in _NEEDLES:
        if needle in text:
            for each in rules:
                message = read_by(each, text[:_LONGEST])
                if message is not None:
                    return message
    return None


def _by_needle() -> tuple[tuple[str, list[MessageRule]], ...]:
    found: dict[str, list[MessageRule]] = {}
    for each in RULES:
        found.setdefault(each.needle, []).append(each)
    return tuple(found.items())


def _any_of(words: Iterable[str]) -> str:
    """Return an expression that finds any of the words; it reads no letter of a line twice."""
    sorted_words = sorted(set(words))
    if "" in sorted_words:
        return ""
    branches = [
        re.escape(letter) + _any_of(word[1:] for word in each)
        for letter, each in groupby(sorted_words, key=lambda word: word[0])
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _from_rarest(needle: str) -> str:
    """Return a needle from its rarest letter on."""
    places = range(max(1, len(needle) - _SHORTEST + 1))
    return needle[min(places, key=lambda at: _COMMON.find(needle[at])) :]


_COMMON = "][(IAPSCM_,jvkywbghp-:umflcdnrsaoi0xte "  # in ordinary logs, the most common last
_SHORTEST = 6
_NEEDLES = _by_needle()
_ANY = re.compile(_any_of(_from_rarest(needle) for needle, _ in _NEEDLES))

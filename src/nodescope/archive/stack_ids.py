"""Ids of functions and of paths of them: the same in every segment and on every node.

A function's id is a 64-bit hash of its module, its name and whether it is kernel code. A
path's id is made of the id of its callers' path and that of its last function, from a root
on: 0, or the id of a text (a process, a core) that stands there. Two recordings of the same
binaries therefore give the same ids, however they number functions and stacks, and profiles
are added by id; of ten million paths two share an id once in four hundred thousand times.

Ids of wide paths are stored in the roll-ups of a segment, where adding up hours needs nothing
else. Those of all its stacks are not: 8 bytes that do not compress, for each stack of a small
segment, would double it, and `identify_rows` makes all of them in one pass over the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from nodescope.arrays import I64, U64, Bool, Integers

_STEP, _FINISH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_29 = np.uint64(29)


def mix(parent: U64, own: U64) -> U64:
    """Return the id of a path from that of its callers and that of its leaf: order matters."""
    mixed = (parent ^ (parent >> _29)) * _STEP + own
    mixed ^= mixed >> _29
    result: U64 = mixed * _FINISH
    return result


@lru_cache(maxsize=1 << 18)  # twelve hours of a node repeat the same names 360 times
def _hash(text: str) -> int:
    from hashlib import blake2b  # it loads OpenSSL, 2 MB of a recorder that rolls up no paths

    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest)


def identify_frames(
    modules: Sequence[str], module_of: I64, names: Sequence[str], kernel: Bool
) -> U64:
    """Return a 64-bit id of each function."""
    hashed = identify_texts((*modules, *names))
    module_ids, name_ids = hashed[: len(modules)], hashed[len(modules) :]
    return mix(module_ids[module_of], name_ids + kernel.astype(np.uint64))


def identify_texts(texts: Sequence[str]) -> U64:
    """Return a 64-bit id of each text."""
    return np.array([_hash(text) for text in texts], np.uint64)


def identify_roots(texts: Iterable[str]) -> U64:
    """Return the id of each text as what paths start from; `name_root` gives its frame's."""
    own = np.array([name_root(text) for text in texts], np.uint64)
    return mix(np.zeros(len(own), np.uint64), own)


def name_root(text: str) -> int:
    """Return the id of a text as if it were a function without a module."""
    hashed = np.array([_hash(""), _hash(text)], np.uint64)
    return int(mix(hashed[:1], hashed[1:])[0])


def identify_rows(depth: Integers, parent: I64, own: U64, roots: U64 | None = None) -> U64:
    """Return the id of each row's path, of a tree in depth-first order.

    `parent` is each row's caller, -1 if it has none; `own` the id of its function. With
    `roots` the rows without a caller have those ids.
    """
    ids = np.empty(len(depth), np.uint64)
    narrow = np.uint8 if depth.max(initial=0) < 256 else np.uint16  # sorted by radix
    order = np.argsort(depth.astype(narrow), kind="stable")
    bounds = np.cumsum(np.bincount(depth)) if len(depth) else np.empty(0, np.int64)
    start = 0
    for end in bounds.tolist():
        rows = order[start:end]
        above = parent[rows]
        if roots is not None and not start:
            ids[rows] = roots[rows]
        else:
            ids[rows] = mix(np.where(above >= 0, ids[above], np.uint64(0)), own[rows])
        start = end
    return ids

"""Stacks without their middle: the outer functions, `[folded]`, and the innermost function.

A recorder whose budget does not allow every new stack folds the rare ones, before they are
named: of a chain of user code the outermost addresses and the innermost one are left, and one
frame stands for those between. Root and leaf stay exact, and so does kernel code, which is
never folded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nodescope.arrays import I64, Bool
from nodescope.perf.decode import Chains

_BESIDE_OUTER = 2  # the innermost function and the frame that stands for the rest


@dataclass(frozen=True, slots=True)
class NewChains:
    """Distinct chains that are not known, of one batch of samples."""

    lengths: I64
    samples: I64  # that have each of them in this batch
    met: Bool  # whether each was folded before

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which chains are kept whole, and how many outer functions the others keep."""

    whole: Bool
    outer: int = 0

    @classmethod
    def all_whole(cls, chains: int) -> Choice:
        """Fold nothing."""
        return cls(np.ones(chains, np.bool_))


class ChoosesStacks(Protocol):
    """Decides which new chains are worth their cost."""

    def choose(self, new: NewChains) -> Choice:
        """Choose which chains are kept whole."""


def folded_length(outer: int) -> int:
    """Return how many frames a folded stack has."""
    return outer + _BESIDE_OUTER


def cut(chains: Chains, outer: int) -> tuple[Chains, I64]:
    """Return chains of the innermost address, a mark and the `outer` outermost ones.

    The second array is where the marks stand: their addresses mean nothing. Every chain must
    be longer than `folded_length(outer)`.
    """
    size = folded_length(outer)
    many = len(chains.lengths)
    ends = chains.starts + chains.lengths
    at = np.empty((many, size), np.int64)
    at[:, :_BESIDE_OUTER] = chains.starts[:, np.newaxis]
    at[:, _BESIDE_OUTER:] = ends[:, np.newaxis] + np.arange(-outer, 0)
    starts = np.arange(many) * size
    lengths = np.full(many, size)
    return Chains(chains.addresses[at.ravel()], starts, lengths), starts + 1

"""The roll-ups of a segment as numpy columns: wide paths, functions and features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nodescope.archive.function_paths import FunctionPaths, Runs
from nodescope.arrays import I16, I64, U64


@dataclass(frozen=True, slots=True)
class WideCounts:
    """Wide paths of a segment by id."""

    id: U64
    samples: I64
    whole: int  # all samples, those of narrow paths included


@dataclass(frozen=True)
class WidePaths:
    """Wide paths of a segment in depth-first order; a root stands before its paths."""

    root: I64  # a core, or a code in `names`; -1: not known
    depth: I16
    frame: I64  # row of `frames`; -1 at depth 0
    samples: I64
    id: U64
    names: list[str] | None  # None: roots are cores

    @cached_property
    def parent(self) -> I64:
        """The row of the callers, -1 at depth 0."""
        return Runs(self.depth).parent

    @property
    def functions(self) -> FunctionPaths:
        """The paths without their roots."""
        rows = np.flatnonzero(self.depth > 0)
        return FunctionPaths(
            self.root[rows], self.depth[rows] - np.int16(1), self.frame[rows], self.samples[rows]
        )

    def name(self, root: int) -> str:
        """What stands at a root."""
        if self.names is None:
            return f"cpu {root}"
        return self.names[root] if root >= 0 else "[unknown]"


@dataclass(frozen=True, slots=True)
class FunctionCounts:
    """Samples of a segment by function."""

    frame: I64
    samples: I64  # with the function on their stack
    own: I64  # in the function itself
    id: U64


@dataclass(frozen=True, slots=True)
class RolledFeatures:
    """What a segment counted for comparisons, by row of `features`, and by second of some."""

    comm: I64  # a code in `comms`; -1: all
    comms: list[str]
    frame: I64  # -1: none
    cpu: I64  # -1: all
    samples: I64
    depth: I64  # summed over the samples
    id: U64
    counted: I64  # row of `features` …
    second: I64  # … and second of …
    counts: I64  # … so many samples

    @property
    def kind(self) -> npt.NDArray[np.int8]:
        """Which of `KINDS` each is."""
        kernel, core = np.where(self.comm < 0, 2, 1), self.cpu >= 0
        return np.where(core, 3, np.where(self.frame < 0, 0, kernel)).astype(np.int8)

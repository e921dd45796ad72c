"""Stacks as diverse as one asks for: those of deep, recursive, many-threaded C++.

The replayed captures of this machine have some 11,000 distinct stacks of functions in two
minutes of 96 cores. Other programs have hundreds of thousands. `Walks` makes them: walks
through the call graph of a real program of `FUNCTIONS` C++ functions, compiled here, whose
threads run while the capture is taken. Which program calls what, how often a function calls
itself, how deep a thread goes and which threads there are all follow from a seed.

Synthetic: the call graph and the walks. Real: the binary, its functions and their names, its
mapping, its threads. A return address lies in its caller, one for each call site; the
innermost address lies anywhere in its function, so that there are more chains of addresses
than stacks of functions, as on a real node.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I16, I64, U64

FUNCTIONS = 5900
THREADS = 48
BODY_BYTES = 120  # of each function at least
CALL_SITES = 6
NAME = "lattice"  # of the program
TAME, DIVERSE = 10_000, 390_000  # distinct stacks: both ends of the knob
MEAN_DEPTH = 36
_DEEPEST = 112
_LEAF_OFFSETS = 8
_MARK_USER = np.uint64(2**64 - 512)
WHAT_IS_SYNTHETIC = (
    f"Synthetic: stacks. Walks through a random call graph of a real C++ program of {FUNCTIONS:,} "
    f"functions and {THREADS} threads, {MEAN_DEPTH} functions deep on average; a function calls up "
    f"to {CALL_SITES} others, itself or one of its neighbours among them. Each distinct stack "
    "occurs at least once, the others of its samples are shared out by a power law."
)


# -- the program ---------------------------------------------------------------


def build_program(folder: Path) -> Path:
    """Compile the program, unless it is there."""
    program = folder / NAME
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{NAME}.cpp"
        source.write_text(_write_source())
        part = program.with_suffix(".part")
        command = ["g++", "-O0", "-fno-omit-frame-pointer", "-no-pie", "-pthread"]
        subprocess.run([*command, "-o", str(part), str(source)], check=True)
        part.rename(program)
    return program


def _write_source() -> str:
    """The program's text: functions of structures in namespaces, and threads that call them."""
    text = ["#include <pthread.h>\n#include <atomic>\nstatic std::atomic<long> sum;\n"]
    calls = []
    for number in range(FUNCTIONS):
        space, structure = f"layer{number % 23}", f"Node{number % 409}"
        name = f"visit_{('children', 'edges', 'leaves', 'values')[number % 4]}_{number}"
        text.append(
            f"namespace {space} {{ template <class T> struct {structure} {{\n"
            f"__attribute__((noinline, aligned(16))) static T {name}(T x) {{\n"
            f'asm volatile(".fill {BODY_BYTES},1,0x90"); return x + {number}; }} }}; }}\n'
        )
        calls.append(f"{space}::{structure}<long>::{name}")
    text.append(f"typedef long (*call_t)(long);\nstatic call_t calls[{FUNCTIONS}] = {{")
    text.append(",\n".join(calls))
    text.append(
        '};\nstatic void *work(void *which) { long n = (long)which; char name[16] = "worker-00";\n'
        "name[7] += n / 10; name[8] += n % 10; pthread_setname_np(pthread_self(), name);\n"
        f"for (;;) {{ n = (n * 1103515245 + 12345) & 0x7fffffff; sum += calls[n % {FUNCTIONS}](n);"
        " }\n}\n"
        f"int main() {{ pthread_t threads[{THREADS}];\n"
        f"for (long n = 0; n < {THREADS}; n++) pthread_create(threads + n, 0, work, (void *)n);\n"
        "for (;;) pthread_join(threads[0], 0); }\n"
    )
    return "".join(text)


@contextmanager
def running(program: Path, count: int = 1) -> Iterator[list[int]]:
    """The program, so many times; their process ids."""
    processes = [subprocess.Popen([str(program)], start_new_session=True) for _ in range(count)]
    time.sleep(0.5)
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def read_functions(program: Path) -> I64:
    """The addresses of its functions; it is loaded where it was linked to be."""
    listed = subprocess.run(
        ["nm", "--defined-only", str(program)], check=True, capture_output=True, text=True
    ).stdout
    found = [line.split() for line in listed.splitlines() if "visit_" in line]
    return np.sort(np.array([int(words[0], 16) for words in found], np.int64))


# -- stacks ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Walks:
    """Distinct stacks, as chains of addresses: the innermost first, after the mark of user code."""

    words: U64
    starts: I64
    lengths: I64

    @classmethod
    def make(cls, functions: I64, count: int, seed: int) -> Walks:
        """Walk until there are `count` distinct stacks."""
        chance = np.random.default_rng(seed)
        graph = _call_graph(len(functions), chance)
        roots = chance.integers(0, len(functions), THREADS)
        kept: list[tuple[U64, I64]] = []
        seen = np.empty(0, np.uint64)
        missing = count
        while missing > 0:
            # Of short walks many are the same: some more are made than are missing.
            function, site, depth = _walk(graph, roots, int(missing * 1.2) + 100, chance)
            ids = _identify(function, depth)
            _, first = np.unique(ids, return_index=True)
            first = np.sort(first[~np.isin(ids[first], seen)])[:missing]
            seen = np.concatenate((seen, ids[first]))
            missing -= len(first)
            kept.append(_to_chains(functions, function[first], site[first], depth[first], chance))
        lengths = np.concatenate([each[1] for each in kept])
        ends = np.cumsum(lengths)
        return cls(np.concatenate([each[0] for each in kept]), ends - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def choose(self, samples: int, chance: np.random.Generator) -> I64:
        """Which stack each sample has: each one at least once, as far as samples go."""
        weight = (np.arange(len(self)) + 3.0) ** -0.9
        chosen = chance.choice(len(self), samples, p=weight / weight.sum())
        order = chance.permutation(samples)[: len(self)]
        chosen[order] = chance.permutation(len(self))[: len(order)]
        return chosen


def _call_graph(functions: int, chance: np.random.Generator) -> I64:
    """What each function calls, the most frequent first."""
    own = np.arange(functions)[:, np.newaxis]
    far = chance.integers(0, functions, (functions, CALL_SITES))
    near = (own + chance.integers(1, 12, (functions, CALL_SITES))) % functions
    draw = chance.random((functions, CALL_SITES))
    graph: I64 = np.where(draw < 0.08, own, np.where(draw < 0.5, near, far))
    return graph


def _walk(
    graph: I64, roots: I64, count: int, chance: np.random.Generator
) -> tuple[I16, npt.NDArray[np.int8], I64]:
    """Functions and call sites of walks, outermost first, and how deep each goes."""
    weight = 1.0 / np.arange(1, CALL_SITES + 1) ** 0.9
    edges = np.cumsum(weight / weight.sum())
    depth = np.clip(chance.gamma(6.0, MEAN_DEPTH / 6.0, count), 3, _DEEPEST).astype(np.int64)
    function = np.empty((count, int(depth.max())), np.int16)
    site = np.empty(function.shape, np.int8)
    now = roots[chance.integers(0, len(roots), count)]
    for level in range(function.shape[1]):
        function[:, level] = now
        site[:, level] = np.searchsorted(edges, chance.random(count))
        now = graph[now, np.minimum(site[:, level], CALL_SITES - 1)]
    return function, site, depth


def _identify(function: I16, depth: I64) -> U64:
    """A hash of each stack of functions."""
    ids = depth.astype(np.uint64)
    for level in range(function.shape[1]):
        there = level < depth
        own = function[:, level].astype(np.uint64) + np.uint64(1)
        mixed = (ids ^ (ids >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + own
        ids = np.where(there, mixed ^ (mixed >> np.uint64(31)), ids)
    return ids


def _to_chains(
    functions: I64,
    function: I16,
    site: npt.NDArray[np.int8],
    depth: I64,
    chance: np.random.Generator,
) -> tuple[U64, I64]:
    """Addresses, the innermost first: the call site in each caller, any place in the leaf."""
    addresses = functions[function].astype(np.uint64) + np.uint64(8)
    addresses += (site.astype(np.int64) * 14).astype(np.uint64)
    rows = np.arange(len(depth))
    inner = chance.integers(0, _LEAF_OFFSETS, len(depth)).astype(np.uint64) * np.uint64(13)
    addresses[rows, depth - 1] = functions[function[rows, depth - 1]].astype(np.uint64) + inner
    place = depth[:, np.newaxis] - 1 - np.arange(function.shape[1])
    turned = np.where(place >= 0, np.take_along_axis(addresses, np.maximum(place, 0), 1), 0)
    chains = np.concatenate((np.full((len(depth), 1), _MARK_USER), turned), axis=1)
    kept = np.arange(chains.shape[1]) <= depth[:, np.newaxis]
    return chains[kept].astype(np.uint64), depth + 1

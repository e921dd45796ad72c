from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.perf import perf_records as make

from nodescope.arrays import I64, U64
from nodescope.perf.address_space import Module
from nodescope.perf.decode import Chains, decode, split
from nodescope.perf.processes import Processes
from nodescope.perf.stacks import KERNEL_MODULE, UNKNOWN, Frame, Stacks, is_resolved
from nodescope.symbols.unresolved import Reason

TEXT = 0xFFFFFFFF81000000
CODE = 0x400000


class NamedByPage:
    """Names code by its page: `f0`, `f1`, …"""

    def __init__(self, path: str) -> None:
        self.module = path

    def resolve(self, file_offsets: U64) -> list[str]:
        return [f"f{offset >> 12}" for offset in file_offsets.tolist()]


class Modules:
    def __init__(self) -> None:
        self.opened: list[str] = []

    def open_module(self, module: Module) -> NamedByPage:
        self.opened.append(module.path)
        return NamedByPage(module.path)


class Kernel:
    """Functions of 16 bytes from TEXT on: `k0`, `k1`, …; a hundred of them."""

    generation = 0

    def restart(self) -> None:
        pass

    def find_eras(self, chains: Chains, times_ns: I64) -> tuple[I64, I64]:
        del chains, times_ns
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def lookup(self, addresses: U64, times_ns: I64) -> I64:
        del times_ns
        rows = (addresses - np.uint64(TEXT)).astype(np.int64) >> 4
        return np.where((rows >= 0) & (rows < 100), rows, -1)

    def frame(self, row: int) -> tuple[str, str]:
        return KERNEL_MODULE, f"k{row}"


class Bench:
    def __init__(self, proc: Path, kernel: Kernel | None) -> None:
        self.processes = Processes(proc)
        self.modules = Modules()
        self.stacks = Stacks(self.processes, self.modules, kernel)

    def text(self, *records: bytes) -> list[str]:
        batch = decode([split(0, b"".join(records))], cgroup=False)
        paths = self.stacks.resolve(batch.samples, self.processes.attribute(batch))
        return [
            ";".join(
                self.stacks.frames[frame].name
                for number in pair
                for frame in self.stacks.paths[number]
            )
            for pair in zip(paths.user.tolist(), paths.kernel.tolist(), strict=True)
        ]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, Kernel())


def born(pid: int, start: int = CODE) -> bytes:
    return (
        make.fork(pid, 1, pid)
        + make.comm(pid, pid, pid, "x", executed=True)
        + make.mmap2(pid, pid, start, 0x10000, "/bin/x")
    )


def test_paths_read_from_the_outermost_caller_to_the_kernel_leaf(bench: Bench) -> None:
    user = [CODE + 0x1010, CODE + 0x2010]
    kernel = [TEXT + 0x05, TEXT + 0x25]
    assert bench.text(born(9), make.sample(9, 9, 10, user=user, kernel=kernel)) == ["f2;f1;k2;k0"]


def test_a_return_address_at_the_start_of_a_function_belongs_to_the_one_before(
    bench: Bench,
) -> None:
    # A call that never returns is the last instruction of its function.
    assert bench.text(make.sample(9, 9, 10, kernel=[TEXT, TEXT + 0x20])) == ["k1;k0"]


def test_other_addresses_of_the_same_functions_are_the_same_path(bench: Bench) -> None:
    low, high = CODE, 0x7F0000000000
    bench.text(
        born(8, low), make.sample(8, 8, 10, user=[low + 0x1010, low + 0x2010]),
        born(9, high), make.sample(9, 9, 10, user=[high + 0x1FF0, high + 0x2FF0]),
    )  # fmt: skip
    assert len(bench.stacks.paths) == 2  # the empty one, and this


def test_runs_of_unknown_frames_become_one(bench: Bench) -> None:
    stray = [0x123456789ABC, 0x6F9C85CB0F137699, 0x5555]
    chain = [CODE + 0x1010, *stray, CODE + 0x2010, *stray]
    assert bench.text(born(9), make.sample(9, 9, 10, user=chain)) == [f"{UNKNOWN};f2;{UNKNOWN};f1"]


def test_a_path_with_unknown_callers_is_not_the_one_without(bench: Bench) -> None:
    stray = 0x123456789ABC
    assert bench.text(
        born(9),
        make.sample(9, 9, 10, user=[CODE + 0x1010]),
        make.sample(9, 9, 11, user=[CODE + 0x1010, stray]),
    ) == ["f1", f"{UNKNOWN};f1"]


def test_a_place_is_resolved_once(bench: Bench) -> None:
    for pid in range(10, 20):
        bench.text(born(pid), make.sample(pid, pid, 99, user=[CODE + 0x1010]), make.end(pid, 100))
    assert bench.modules.opened == ["/bin/x"]


def test_a_lasting_process_is_recognised_by_its_addresses(bench: Bench) -> None:
    bench.text(born(9))
    first = bench.text(make.sample(9, 9, 10, user=[CODE + 0x1010]))
    assert bench.text(make.sample(9, 9, 11, user=[CODE + 0x1010])) == first == ["f1"]
    assert bench.modules.opened == ["/bin/x"]


def test_restart_numbers_paths_anew_and_keeps_functions(bench: Bench) -> None:
    bench.text(born(9))
    bench.text(make.sample(9, 9, 10, user=[CODE + 0x1010], kernel=[TEXT]))
    bench.stacks.restart()
    assert len(bench.stacks.paths) == 1
    again = bench.text(make.sample(9, 9, 11, user=[CODE + 0x1010], kernel=[TEXT]))
    assert again == ["f1;k0"]
    assert bench.modules.opened == ["/bin/x"]


def test_kernel_code_without_symbols_keeps_its_address(tmp_path: Path, bench: Bench) -> None:
    assert Bench(tmp_path, None).text(make.sample(9, 9, 1, kernel=[TEXT])) == [f"+{TEXT:#x}"]
    beyond = TEXT + 16 * 100
    assert bench.text(make.sample(9, 9, 1, kernel=[beyond])) == [f"+{beyond:#x}"]


def test_new_kernel_symbols_replace_the_old_rows(bench: Bench) -> None:
    kernel = Kernel()
    bench.stacks._kernel = kernel
    assert bench.text(make.sample(9, 9, 1, kernel=[TEXT])) == ["k0"]
    kernel.generation = 1
    kernel.frame = lambda row: ("[new]", f"n{row}")  # type: ignore[method-assign]
    bench.stacks.restart()
    assert bench.text(make.sample(9, 9, 2, kernel=[TEXT])) == ["n0"]


def test_a_sample_without_frames_has_the_empty_path(bench: Bench) -> None:
    assert bench.text(make.sample(9, 9, 1, chain=[])) == [""]


def test_which_frames_are_resolved() -> None:
    frames = [Frame("a", "main", False), Frame("a", "+0x10", False), Frame(UNKNOWN, UNKNOWN, False)]
    assert is_resolved(frames).tolist() == [True, False, False]


class Moving(Kernel):
    """At TEXT one function until 100 ns, another one from then on."""

    def find_eras(self, chains: Chains, times_ns: I64) -> tuple[I64, I64]:
        rows = np.arange(len(chains.lengths))
        return rows, (times_ns >= 100).astype(np.int64)

    def lookup(self, addresses: U64, times_ns: I64) -> I64:
        return np.where(times_ns >= 100, 1, 0)


def test_the_same_addresses_are_another_path_once_other_code_lies_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Moving())
    samples = [make.sample(9, 9, when, kernel=[TEXT]) for when in (50, 150, 60)]
    assert bench.text(*samples) == ["k0", "k1", "k0"]
    assert bench.text(make.sample(9, 9, 160, kernel=[TEXT])) == ["k1"]


def test_paths_are_found_anew_after_symbols_were_read_again(bench: Bench) -> None:
    """Without waiting for the next segment: what was unnamed may have a name now."""
    kernel = Kernel()
    bench.stacks._kernel = kernel
    assert bench.text(make.sample(9, 9, 1, kernel=[TEXT])) == ["k0"]
    kernel.frame = lambda row: ("[new]", f"n{row}")  # type: ignore[method-assign]
    kernel.generation = 1
    assert bench.text(make.sample(9, 9, 2, kernel=[TEXT])) == ["n0"]


def test_what_is_in_no_module_has_a_counted_reason(tmp_path: Path, bench: Bench) -> None:
    stray, beyond = 0x123456789ABC, TEXT + 16 * 100
    bench.text(
        born(9),
        make.sample(9, 9, 10, user=[CODE + 0x1010, stray]),
        make.sample(9, 9, 11, user=[CODE + 0x1010, stray + 8]),  # the same stack
        make.sample(9, 9, 12, user=[CODE + 0x2010, stray]),
        make.sample(77, 77, 13, user=[CODE]),  # never heard of, and not in /proc
        make.sample(9, 9, 14, kernel=[beyond, beyond + 32]),
        make.sample(9, 9, 15, kernel=[beyond]),
    )
    assert +bench.stacks.unnamed == {
        Reason.NO_MAPPING: 2, Reason.PROCESS_GONE: 1, Reason.NO_KERNEL_FUNCTION: 2,
    }  # fmt: skip
    closed = Bench(tmp_path, None)
    closed.text(make.sample(9, 9, 1, kernel=[TEXT]))
    assert +closed.stacks.unnamed == {Reason.NO_KERNEL_SYMBOLS: 1}

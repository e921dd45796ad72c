from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from nodescope.perf.decode import Chains
from nodescope.perf.kernel_code import CodeChange
from nodescope.perf.kernel_names import KernelNames

CORE = 0xFFFFFFFF81000000
CODE = 0xFFFFFFFFC0022000
TEXT = b"""\
ffffffff81000000 T _text
ffffffff81000100 T schedule
ffffffff81000400 T _etext
ffffffffc0020000 t bpf_prog_1_old\t[bpf]
"""


class Node:
    """Kernel symbols of a node whose kallsyms and clock are ours."""

    def __init__(self, proc: Path) -> None:
        self.file = proc / "kallsyms"
        self.file.write_bytes(TEXT)
        self.now = 0.0
        self.names = KernelNames(proc, lambda: self.now)

    def name(self, address: int, time_ns: int = 10**18) -> str | None:
        return self.all_names((address, time_ns))[0]

    def all_names(self, *places: tuple[int, int]) -> list[str | None]:
        rows = self.names.lookup(
            np.array([address for address, _ in places], np.uint64),
            np.array([time_ns for _, time_ns in places], np.int64),
        )
        return [self.names.frame(row)[1] if row >= 0 else None for row in rows.tolist()]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def came(time_ns: int, name: str, start: int = CODE, length: int = 0x100) -> CodeChange:
    return CodeChange(time_ns, start, start + length, "[bpf]", name)


def went(time_ns: int, name: str, start: int = CODE, length: int = 0x100) -> CodeChange:
    return CodeChange(time_ns, start, start + length, "[bpf]", name, gone=True)


def test_a_program_that_comes_is_named_at_once_and_no_further_than_it_reaches(node: Node) -> None:
    node.names.follow([came(5, "late")])
    assert node.all_names((CODE, 5), (CODE + 0xFF, 9), (CODE + 0x100, 9)) == ["late", "late", None]
    row = node.names.lookup(np.array([CODE], np.uint64), np.array([9], np.int64))
    assert node.names.frame(int(row[0])) == ("[bpf]", "late")
    assert node.name(CORE + 0x100) == "schedule"


def test_one_place_has_several_names_one_after_the_other(node: Node) -> None:
    """Even within the records that were taken from the rings at once, and in any order."""
    node.names.follow([came(30, "second"), went(20, "first"), came(10, "first")])
    asked = [(CODE + 8, when) for when in (35, 5, 15, 30, 25, 10)]
    assert node.all_names(*asked) == ["second", None, "first", "second", None, "first"]
    node.names.follow([])
    assert node.name(CODE + 8, 40) == "second"


def test_a_program_from_before_goes_and_its_place_is_anothers(node: Node) -> None:
    old = 0xFFFFFFFFC0020000
    assert node.name(old + 4) == "bpf_prog_1_old"
    node.names.follow([went(10, "bpf_prog_1_old", old), came(20, "new", old, 0x40)])
    assert node.all_names((old + 4, 5), (old + 4, 15), (old + 4, 25), (old + 0x80, 25)) == [
        "bpf_prog_1_old", None, "new", None,
    ]  # fmt: skip


def test_the_symbol_before_does_not_reach_into_the_next_page(node: Node) -> None:
    """It did for two pages, and so whatever came after `bpf_prog_1_old` had its name."""
    assert node.all_names((0xFFFFFFFFC0020FFF, 1), (0xFFFFFFFFC0021000, 1)) == [
        "bpf_prog_1_old", None,
    ]  # fmt: skip


def test_a_module_that_was_loaded_later_is_named_although_nobody_told_of_it(node: Node) -> None:
    node.file.write_bytes(TEXT + b"ffffffffc0600000 t late_function\t[late]\n")
    assert node.name(0xFFFFFFFFC0600010) is None  # read a moment ago
    generation = node.names.generation
    node.now = 61
    assert node.name(0xFFFFFFFFC0600010) == "late_function"
    assert node.names.generation > generation


def test_a_page_that_the_file_does_not_explain_is_not_a_reason_to_read_it_every_minute(
    node: Node,
) -> None:
    reads = []
    for minute in range(1, 21):
        node.now = minute * 61.0
        generation = node.names.generation
        assert node.name(0xFFFFFFFFC0700000 + minute) is None
        reads.append(node.names.generation > generation)
    assert (reads[0], sum(reads)) == (True, 3)  # once in ten minutes
    node.file.write_bytes(TEXT + b"ffffffffc0800000 t other\t[other]\n")
    node.now += 61
    assert node.name(0xFFFFFFFFC0800000) == "other"


def test_what_came_stays_named_when_the_file_is_read_for_another_reason(node: Node) -> None:
    node.names.follow([came(5, "late")])
    node.now = 61
    node.file.write_bytes(TEXT + b"ffffffffc0022000 t late\t[bpf]\n")
    node.names.follow([])
    assert node.all_names((CODE + 0x10, 9), (CODE + 0x200, 9)) == ["late", "late"]  # read again
    node.names.follow([went(20, "late")])
    assert node.name(CODE + 0x10, 30) is None


def test_what_came_and_went_stays_named_when_the_file_is_read_meanwhile(node: Node) -> None:
    """Another address in nothing that is known has it read, of the same batch of records."""
    node.now = 61
    node.names.follow([came(10, "short"), went(20, "short")])
    asked = [(CODE + 8, 15), (0xFFFFFFFFC0700000, 15), (CODE + 8, 25)]
    assert node.all_names(*asked) == ["short", None, None]
    assert node.all_names(*asked) == ["short", None, None]
    node.file.write_bytes(TEXT + b"ffffffffc0022000 t later\t[module]\n")
    node.now = 122
    assert node.name(0xFFFFFFFFC0900000, 15) is None  # the file is read once more
    node.names.follow([])
    assert node.name(CODE + 8, 30) == "later"


def test_after_lost_records_what_the_file_says_is_believed(node: Node) -> None:
    node.names.follow([came(5, "went meanwhile")])
    node.names.doubt()
    node.names.follow([])
    assert node.name(CODE) == "went meanwhile"
    node.now = 61
    assert node.name(CORE + 0x100) == "schedule"
    assert node.name(CODE) is None


def test_an_unreadable_file_leaves_what_is_known(node: Node) -> None:
    node.file.unlink()
    node.now = 61
    assert node.all_names((CORE + 0x100, 1), (CODE, 1)) == ["schedule", None]


def test_chains_through_moving_code_are_told_apart_by_time(node: Node) -> None:
    chains = Chains(
        np.array([CORE, CODE + 1, CORE, CORE, CODE + 2], np.uint64),
        np.array([0, 2, 2, 3]),
        np.array([2, 0, 1, 2]),
    )
    times = np.array([15, 15, 15, 25], np.int64)
    assert [part.tolist() for part in node.names.find_eras(chains, times)] == [[], []]
    node.names.follow([came(10, "first"), went(20, "first")])
    assert [part.tolist() for part in node.names.find_eras(chains, times)] == [[0, 3], [1, 2]]
    node.names.restart()
    assert [part.tolist() for part in node.names.find_eras(chains, times)] == [[], []]


def test_many_names_are_forgotten_when_their_code_is_gone(node: Node) -> None:
    for number in range(5000):
        node.names.follow([came(number, f"program_{number}"), went(number, f"program_{number}")])
    node.names.follow([came(10_000, "last")])
    node.names.restart()
    node.names.follow([])
    assert node.name(CODE) == "last"
    assert len(node.names._frames) == 1


def test_following_costs_next_to_nothing(node: Node) -> None:
    """A thousand programs a second would be many; a chain costs nothing while none moves."""
    changes = [came(at, f"program_{at % 50}", CODE + at % 50 * 0x100) for at in range(1000)]
    started = time.process_time()
    node.names.follow(changes)
    assert time.process_time() - started < 0.1  # about 0.002; the rest is for slow machines

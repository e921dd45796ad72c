from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.perf import perf_records as make
from tests.perf.test_stacks import CODE, TEXT, Bench, Kernel, born

from nodescope.perf.decode import Chains, decode, split
from nodescope.perf.folding import Choice, NewChains, cut
from nodescope.perf.stacks import Stacks

DEEP = [CODE + 0x1000 * page + 0x10 for page in range(1, 8)]  # f1 is the innermost, f7 the root


class Chooser:
    """Folds what a test says, and remembers what it was asked."""

    def __init__(self, outer: int = 2) -> None:
        self.outer = outer
        self.whole = False
        self.asked: list[NewChains] = []

    def choose(self, new: NewChains) -> Choice:
        self.asked.append(new)
        return Choice(np.full(len(new), self.whole) | (new.lengths <= self.outer + 2), self.outer)


@pytest.fixture
def chooser() -> Chooser:
    return Chooser()


@pytest.fixture
def bench(tmp_path: Path, chooser: Chooser) -> Bench:
    bench = Bench(tmp_path, Kernel())
    bench.stacks = Stacks(bench.processes, bench.modules, Kernel(), chooser)
    return bench


def test_the_outermost_addresses_and_the_innermost_one_are_left() -> None:
    chains = Chains(np.arange(11, dtype=np.uint64), np.array([0, 5]), np.array([5, 6]))
    left, marks = cut(chains, 2)
    assert left.addresses[marks].tolist() == [0, 5]
    assert np.delete(left.addresses, marks).tolist() == [0, 3, 4, 5, 9, 10]
    assert (left.starts.tolist(), left.lengths.tolist()) == ([0, 4], [4, 4])


def test_a_folded_stack_has_its_root_and_its_leaf_and_all_of_the_kernel(bench: Bench) -> None:
    kernel = [TEXT + 0x05, TEXT + 0x25, TEXT + 0x45]
    assert bench.text(
        born(9),
        make.sample(9, 9, 10, user=DEEP),
        make.sample(9, 9, 11, user=DEEP, kernel=kernel),
    ) == ["f7;f6;[folded];f1", "f7;f6;[folded];f1;k4;k2;k0"]


def test_a_stack_that_is_as_short_as_its_fold_stays_whole(bench: Bench) -> None:
    assert bench.text(born(9), make.sample(9, 9, 10, user=DEEP[:4])) == ["f4;f3;f2;f1"]


def test_each_sample_with_a_folded_stack_is_told(bench: Bench) -> None:
    records = born(9) + b"".join(
        make.sample(9, 9, 10 + at, user=DEEP if at % 3 else DEEP[:2]) for at in range(9)
    )
    batch = decode([split(0, records)], cgroup=False)
    paths = bench.stacks.resolve(batch.samples, bench.processes.attribute(batch))
    assert paths.folded.tolist() == [bool(at % 3) for at in range(9)]


def test_a_chain_that_was_folded_is_known_when_it_is_met_again(
    bench: Bench, chooser: Chooser
) -> None:
    bench.text(born(9))
    bench.text(make.sample(9, 9, 10, user=DEEP), make.sample(9, 9, 11, user=DEEP))
    assert [new.samples.tolist() for new in chooser.asked] == [[2]]
    assert not chooser.asked[0].met.any()
    assert bench.text(make.sample(9, 9, 12, user=DEEP)) == ["f7;f6;[folded];f1"]
    assert chooser.asked[1].met.all()
    chooser.whole = True
    assert bench.text(make.sample(9, 9, 13, user=DEEP)) == ["f7;f6;f5;f4;f3;f2;f1"]
    bench.text(make.sample(9, 9, 14, user=DEEP))
    assert len(chooser.asked) == 3  # nobody has to choose about what is known whole


def test_a_new_segment_knows_no_folded_chains(bench: Bench, chooser: Chooser) -> None:
    bench.text(born(9))
    bench.text(make.sample(9, 9, 10, user=DEEP))
    bench.stacks.restart()
    bench.text(make.sample(9, 9, 11, user=DEEP))
    assert not chooser.asked[-1].met.any()

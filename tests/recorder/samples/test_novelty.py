from __future__ import annotations

import numpy as np
import pytest

from nodescope.perf.folding import NewChains, folded_length
from nodescope.quantities import SECOND_NS
from nodescope.recorder.samples.novelty import (
    FRAME_CPU_NS,
    OUTER,
    SAVED_S,
    SHARE,
    TIGHTEST,
    Novelty,
    allow_frames,
)

PER_S = 1000.0


def new_chains(
    lengths: list[int], samples: list[int] | None = None, met: list[bool] | None = None
) -> NewChains:
    return NewChains(
        np.array(lengths),
        np.array(samples or [1] * len(lengths)),
        np.array(met or [False] * len(lengths)),
    )


def used_up(per_s: float = PER_S) -> Novelty:
    """Nothing is saved up, and a second has passed since."""
    novelty = Novelty(per_s)
    novelty.advance(0)
    novelty.choose(new_chains([int(SAVED_S * per_s)]))
    novelty.spend(int(SAVED_S * per_s))
    novelty.advance(SECOND_NS)
    return novelty


def feed(novelty: Novelty, second: int, chains: int, length: int = 30) -> int:
    """A second of new stacks: how many of them were folded."""
    new = new_chains([length] * chains)
    novelty.advance(second * SECOND_NS)
    choice = novelty.choose(new)
    folded = int(np.count_nonzero(~choice.whole))
    novelty.spend((chains - folded) * length + folded * folded_length(choice.outer))
    return folded


def test_what_the_allowance_has_room_for_is_whole() -> None:
    novelty = Novelty(PER_S)
    assert sum(feed(novelty, second, 33) for second in range(600)) == 0


def test_a_burst_is_whole_that_was_saved_up_for() -> None:
    novelty = Novelty(PER_S)
    assert feed(novelty, 0, int(SAVED_S * PER_S / 30)) == 0
    assert feed(novelty, 1, 200) > 0


def test_what_is_taken_on_lasts_within_the_allowance() -> None:
    novelty, taken = Novelty(PER_S), 0
    for second in range(600):
        novelty.advance(second * SECOND_NS)
        choice = novelty.choose(new_chains([40] * 100))
        frames = int(choice.whole.sum()) * 40
        frames += int((~choice.whole).sum()) * folded_length(choice.outer)
        novelty.spend(frames)
        taken += frames
    assert 0.8 * PER_S * 600 <= taken <= PER_S * (600 + SAVED_S)


def test_the_rarest_are_folded_first_and_of_these_the_deepest() -> None:
    novelty = used_up()
    new = new_chains(
        [100, 100, 100, 90, 100, 60, 500],
        [1, 5, 1, 1, 1, 1, 1],
        [True, False, False, False, False, False, False],
    )
    # There is room for 500 frames of whole stacks: met before, often, shallow.
    assert novelty.choose(new).whole.tolist() == [True, True, True, True, False, True, False]
    smaller = used_up(500.0)
    assert smaller.choose(new).whole.tolist() == [True, True, False, False, False, False, False]


@pytest.mark.parametrize(("chains", "outer"), [(20, 16), (45, 8), (160, 1), (5000, 1)])
def test_the_more_are_folded_the_fewer_outer_functions_they_keep(chains: int, outer: int) -> None:
    assert outer in OUTER
    assert used_up().choose(new_chains([600] * chains)).outer == outer


def test_chains_of_functions_that_are_known_do_not_use_the_allowance_up() -> None:
    """As in a program that calls the same functions from many places."""
    novelty = Novelty(PER_S)
    folded = 0
    for second in range(120):
        novelty.advance(second * SECOND_NS)
        folded += int((~novelty.choose(new_chains([30] * 500)).whole).sum())
        novelty.spend(100)
    assert folded == 0


def test_folding_ends_when_stacks_are_no_longer_new() -> None:
    novelty = Novelty(PER_S)
    assert sum(feed(novelty, second, 300) for second in range(120)) > 0
    assert sum(feed(novelty, second, 10) for second in range(180, 240)) == 0


def test_the_allowance_may_be_halved_and_given_back() -> None:
    novelty = Novelty(PER_S)
    novelty.tighten(1)
    assert novelty.allowance == PER_S / 2
    novelty.tighten(9)
    assert novelty.allowance == PER_S / 2**TIGHTEST
    novelty.tighten(0)
    assert novelty.allowance == PER_S


def test_it_is_diverse_only_where_folding_would_help() -> None:
    tame, wild = Novelty(PER_S), Novelty(PER_S)
    for second in range(60):
        feed(tame, second, 3)
        feed(wild, second, 100)
    assert (tame.is_diverse, wild.is_diverse) == (False, True)


def test_the_allowance_is_a_part_of_the_smaller_budget() -> None:
    assert allow_frames(0.01, 10**12, 120 * SECOND_NS) == SHARE * 0.01 * SECOND_NS / FRAME_CPU_NS
    little = allow_frames(0.01, 10**6, 120 * SECOND_NS)
    assert little < allow_frames(0.01, 10**7, 120 * SECOND_NS)
    assert allow_frames(0.01, 10**6, 60 * SECOND_NS) == 2 * little

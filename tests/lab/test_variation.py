from __future__ import annotations

from nodescope.lab.variation import Variation


def draw(seed: int) -> list[object]:
    variation = Variation(seed)
    return [variation.name(), variation.between(1, 10**9), variation.seconds(0, 1000)]


def test_a_seed_gives_the_same_run_again_and_another_one_another() -> None:
    assert draw(7) == draw(7)
    assert len({str(draw(seed)) for seed in range(20)}) == 20


def test_names_are_of_one_part_each_and_fit_into_a_comm() -> None:
    variation = Variation(1)
    names = [variation.name() for _ in range(60)]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 15 for name in names)


def test_choices_lie_between_their_ends() -> None:
    variation = Variation(2)
    assert {variation.between(3, 5) for _ in range(100)} == {3, 4, 5}
    assert all(0.5 <= variation.seconds(0.5, 0.6) <= 0.6 for _ in range(100))

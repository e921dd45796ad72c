from __future__ import annotations

from nodescope.recorder.heap_growth import GROWTH_BYTES, LOOKS, HeapGrowth

MB = 1 << 20
LIMIT = 150 * MB


def look(heap: HeapGrowth, rss: int, left: int) -> bool:
    """One look; `left` is what is resident once free heap was returned."""
    worth = heap.is_worth_returning(rss)
    if worth:
        heap.note_returned(left)
    return worth


def test_memory_that_grows_slowly_is_returned_each_time_it_has_grown_by_so_much() -> None:
    heap = HeapGrowth(LIMIT)
    assert look(heap, 60 * MB, 60 * MB)  # nothing is known yet
    rss, returned = 60 * MB, []
    for _ in range(60):
        if look(heap, rss, 60 * MB):
            returned.append(rss)
            rss = 60 * MB
        rss += MB
    every = GROWTH_BYTES // MB + 2  # looks, from one return to the next
    assert returned == [60 * MB + GROWTH_BYTES + MB] * (60 // every)


def test_what_every_flush_uses_is_not_returned() -> None:
    heap = HeapGrowth(LIMIT)
    assert [look(heap, 120 * MB, 80 * MB) for _ in range(20)] == [True] + [False] * 19


def test_growth_beyond_what_every_flush_uses_is_returned() -> None:
    heap = HeapGrowth(LIMIT)
    for _ in range(3):
        look(heap, 120 * MB, 80 * MB)
    assert look(heap, 120 * MB + GROWTH_BYTES + 1, 80 * MB)
    assert not look(heap, 120 * MB, 80 * MB)


def test_over_the_budget_what_is_free_is_returned_now_and_then_and_never_blamed() -> None:
    heap = HeapGrowth(LIMIT)
    assert look(heap, LIMIT + MB, LIMIT - MB)
    looks = []
    for _ in range(3 * (LOOKS + 1)):
        looks.append(look(heap, LIMIT + MB, LIMIT - MB))
        assert heap.estimate_needed(LIMIT + MB) == LIMIT - MB
    assert looks.count(True) == 3
    assert heap.estimate_needed(LIMIT - 5) == LIMIT - 5


def test_what_is_not_free_is_blamed() -> None:
    heap = HeapGrowth(LIMIT)
    assert look(heap, LIMIT + 9 * MB, LIMIT + 8 * MB)
    assert heap.estimate_needed(LIMIT + 9 * MB) == LIMIT + 8 * MB

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodescope.sources.memory_cgroups.sharing import Candidate, bytes_each, share_out

EACH = bytes_each(2)
candidates = st.builds(
    Candidate,
    pages=st.integers(1, 1 << 24),
    kernel_bytes=st.none() | st.integers(0, 1 << 36),
)


@given(st.integers(0, 1 << 20), st.lists(candidates, max_size=12))
def test_no_more_are_shared_out_than_there_are(total: int, parents: list[Candidate]) -> None:
    counts = share_out(total, parents, EACH)
    assert len(counts) == len(parents)
    assert sum(counts) <= total
    for count, parent in zip(counts, parents, strict=True):
        assert 0 <= count <= parent.pages
    if total >= len(parents):
        assert all(count >= 1 for count in counts)
    assert sum(counts) == min(total, sum(parent.pages for parent in parents)) or total < len(counts)


def test_parents_whose_children_hold_little_come_first() -> None:
    # As measured: 5,000 and 300 made; sessions that ended hold 43 MB in some 30.
    parents = [
        Candidate(5_000, 71_270_000),
        Candidate(317, 4_280_320),
        Candidate(11_015, 52_000_000),
        Candidate(7_370, None),
    ]
    few, less, sessions, root = share_out(5_338, parents, EACH)
    assert abs(few - 5_000) <= 20
    assert abs(less - 300) <= 20
    assert 10 <= sessions <= 60
    assert root == 1


def test_all_go_to_the_only_parent() -> None:
    assert share_out(800, [Candidate(10_000, 1_000_000)], EACH) == [800]


def test_without_kernel_memory_pages_decide() -> None:
    assert share_out(400, [Candidate(100, None), Candidate(300, None)], EACH) == [100, 300]
    parents = [Candidate(7_000, None), Candidate(500, None), Candidate(104, None)]
    assert share_out(600, parents, EACH) == [1, 495, 104]

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodescope.sources.memory_cgroups.apportioned import Candidate, Share, bytes_each, share_out

CPUS = 2
EACH = bytes_each(CPUS)
candidates = st.builds(
    Candidate,
    pages=st.integers(1, 1 << 24),
    kernel_bytes=st.none() | st.integers(0, 1 << 36),
    occupied=st.booleans(),
    doubtful=st.booleans(),
)


@given(st.integers(0, 1 << 20), st.lists(candidates, max_size=12))
def test_no_more_are_shared_out_than_there_are(total: int, parents: list[Candidate]) -> None:
    shares = share_out(total, parents, CPUS)
    counts = [share.count for share in shares]
    assert len(counts) == len(parents)
    assert sum(counts) == min(total, sum(parent.pages for parent in parents))
    for share, parent in zip(shares, parents, strict=True):
        assert 0 <= share.least <= share.count <= share.most <= total
        # a bool among them would be printed as one
        assert [type(each) for each in (share.count, share.least, share.most)] == [int] * 3
        assert share.count <= parent.pages
    sure = [share for share, each in zip(shares, parents, strict=True) if not each.doubtful]
    if total >= len(sure):
        assert all(share.count >= 1 for share in sure)


@st.composite
def piles(draw: st.DrawFn) -> list[tuple[int, Candidate]]:
    """Parents with so many dying ones, each of which cost its parent what one must."""
    found = []
    for number in draw(st.lists(st.integers(1, 5_000), min_size=1, max_size=8)):
        pages = number + draw(st.integers(0, 50_000))
        left_in_kernel = draw(st.integers(0, 1 << 32))
        known = draw(st.booleans())
        kernel = number * (EACH - 4096) + left_in_kernel if known else None
        found.append((number, Candidate(pages, kernel, occupied=draw(st.booleans()))))
    return found


@given(piles())
def test_the_truth_lies_within_the_bounds(parents: list[tuple[int, Candidate]]) -> None:
    total = sum(number for number, _ in parents)
    shares = share_out(total, [candidate for _, candidate in parents], CPUS)
    for (number, _), share in zip(parents, shares, strict=True):
        assert share.least <= number <= share.most


def _counts(total: int, *parents: Candidate) -> list[int]:
    return [share.count for share in share_out(total, parents, CPUS)]


def test_parents_whose_children_hold_little_come_first() -> None:
    # As measured: 5,000 and 300 made; sessions that ended hold 43 MB in some 30.
    few, less, sessions, root = _counts(
        5_338,
        Candidate(5_000, 71_270_000),
        Candidate(317, 4_280_320),
        Candidate(11_015, 52_000_000),
        Candidate(7_370, None),
    )
    assert abs(few - 5_000) <= 20
    assert abs(less - 300) <= 20
    assert 10 <= sessions <= 60
    assert root == 1


def test_kernel_memory_that_removed_cgroups_left_behind_claims_none() -> None:
    # As measured when 500 were made: sessions of days left 660 MB of dentries and inodes
    # with their parent. That pays for 46,000 cgroups, of which there are 622.
    for pages in (700, 5_000, 46_300, 118_406):
        made, sessions, root = share_out(
            622,
            [Candidate(500, 7_131_136), Candidate(pages, 660_353_396), Candidate(8_427, None)],
            CPUS,
        )
        assert made == Share(500, 1, 622, agrees=True)
        assert sessions == Share(121, 0, 622, agrees=False)
        assert root.count == 1


def test_a_live_parent_that_reads_much_takes_nothing_away() -> None:
    made, cached, busy, root = _counts(
        5_400,
        Candidate(5_000, 71_311_360),
        Candidate(304, 4_288_512),
        Candidate(300, 9_000_000, occupied=True),  # and some 20 of its own
        Candidate(524_288, None),
    )
    assert abs(made - 5_000) <= 20
    assert abs(cached - 300) <= 20
    assert busy >= 1
    assert root >= 1


def test_what_lagging_counters_explain_gets_what_nobody_else_has() -> None:
    assert _counts(100, Candidate(100, 1_426_000), Candidate(90, None, doubtful=True)) == [100, 0]
    assert _counts(60, Candidate(90, None, doubtful=True)) == [60]


def test_few_pages_that_kernel_memory_confirms_are_not_doubtful() -> None:
    parents = (Candidate(40, 40 * EACH, doubtful=True), Candidate(5_000, None))
    assert _counts(50, *parents) == [40, 10]


def test_those_heard_of_are_certain() -> None:
    shares = share_out(30, [Candidate(400, None, heard=25), Candidate(7, None)], CPUS)
    assert shares[0].least == 25
    assert sum(share.count for share in shares) == 30
    assert shares[0].count >= 25


def test_all_go_to_the_only_parent() -> None:
    assert share_out(800, [Candidate(10_000, 1_000_000)], CPUS) == [Share(800, 800, 800, True)]


def test_without_kernel_memory_pages_decide() -> None:
    assert _counts(400, Candidate(100, None), Candidate(300, None)) == [100, 300]
    parents = (Candidate(7_000, None), Candidate(500, None), Candidate(104, None))
    assert _counts(600, *parents) == [1, 495, 104]

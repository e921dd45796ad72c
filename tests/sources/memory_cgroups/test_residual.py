from __future__ import annotations

from pathlib import Path

from tests.sources.memory_cgroups.trees import PAGE, V1Tree, V2Tree

from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.memory_cgroups.parents import Parent, parse_amounts
from nodescope.sources.memory_cgroups.residual import read_parents


def test_v1_names_parents_kinds_and_bytes(tmp_path: Path) -> None:
    # Figures of this machine: 5,000 by tmpfs and 300 by page cache.
    tree = V1Tree(tmp_path)
    shmem, file = 5_000 * PAGE, 315 * PAGE
    tree.group("/", {"cache": 9 * PAGE}, {"cache": 9 * PAGE + shmem + file, "shmem": shmem})
    tree.group("/pods", {}, {"cache": shmem, "shmem": shmem}, kernel=71_270_000)
    tree.group("/batch", {}, {"cache": file}, kernel=4_280_320)
    tree.group("/quiet", {"cache": 7 * PAGE, "rss": PAGE}, processes="17\n")
    tree.track(5_300)
    found = read_parents(find_memory_hierarchy(tree.places), 5_300)
    assert [(each.path, each.held) for each in found] == [
        ("/pods", {"shmem": shmem}),
        ("/batch", {"file": file}),
    ]
    assert [each.exact for each in found] == [False, False]
    pods, batch = (each.dying or 0 for each in found)
    assert abs(pods - 5_000) <= 20
    assert abs(batch - 300) <= 20


def test_v1_live_children_are_not_held_against_their_parent(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    child = {"cache": 40 * PAGE, "rss": 3 * PAGE}
    own = {"cache": 2 * PAGE}
    dying = {"cache": 6 * PAGE, "shmem": 4 * PAGE, "rss": PAGE, "swap": 2 * PAGE}
    total = {name: child.get(name, 0) + own.get(name, 0) + dying.get(name, 0) for name in dying}
    tree.group("/", {}, total)
    tree.group("/kubepods", own, total, processes="4\n")
    tree.group("/kubepods/pod1", child, child, processes="5\n")
    tree.track(3)
    (parent,) = read_parents(find_memory_hierarchy(tree.places), 3)
    assert parent == Parent(
        "/kubepods",
        3,
        False,
        {"shmem": 4 * PAGE, "file": 2 * PAGE, "anon": PAGE, "swap": 2 * PAGE},
        occupied=True,
        evidence="rest",
        least=3,
        most=3,
    )


def test_v1_kernel_memory_left_behind_does_not_take_their_number(tmp_path: Path) -> None:
    # Figures of this machine when 619 of 622 were given to the wrong parent: 660 MB of
    # dentries and inodes that ended sessions left, and pages fewer than they would pay for.
    tree = V1Tree(tmp_path)
    made, sessions = 500 * PAGE, 21_000 * PAGE
    live = {"cache": 900_000 * PAGE, "rss": 90_000 * PAGE}
    tree.group("/", {}, {**live, "cache": live["cache"] + sessions + made, "shmem": made})
    tree.group("/pods", {}, {"cache": made, "shmem": made}, kernel=7_131_136)
    tree.group("/api", {}, {**live, "cache": live["cache"] + sessions}, kernel=769_142_784)
    tree.group("/api/job", live, live, kernel=106_000_000, processes="9\n")
    found = read_parents(find_memory_hierarchy(tree.places), 622)
    assert [(each.path, each.dying, each.evidence) for each in found] == [
        ("/pods", 500, "kernel_memory"),
        ("/api", 122, "rest"),
    ]
    assert (found[1].least, found[1].most) == (0, 622)
    assert not any(each.exact for each in found)


def test_v1_pages_of_a_live_parent_are_its_own(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    own = {"cache": 524_288 * PAGE}
    held = {"cache": 5_000 * PAGE, "shmem": 5_000 * PAGE}
    tree.group("/", {}, {"cache": own["cache"] + held["cache"], "shmem": held["shmem"]})
    tree.group("/busy", own, own, kernel=30_000_000, processes="7\n")
    tree.group("/pods", {}, held, kernel=71_311_360)
    (parent,) = read_parents(find_memory_hierarchy(tree.places), 5_003)
    assert (parent.path, parent.dying) == ("/pods", 5_000)


def test_v1_what_lagging_sums_explain_is_no_parent(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    child = {"cache": 7_000 * PAGE}
    lagging = {"cache": 7_090 * PAGE}  # of two CPUs: by up to 256 pages
    held = {"cache": 40 * PAGE, "shmem": 40 * PAGE}
    tree.group("/", {}, {"cache": lagging["cache"] + held["cache"], "shmem": held["shmem"]})
    tree.group("/busy", {}, lagging)
    tree.group("/busy/job", child, child, processes="7\n")
    tree.group("/pods", {}, held, kernel=40 * 14_262)
    hierarchy = find_memory_hierarchy(tree.places)
    assert [(each.path, each.dying) for each in read_parents(hierarchy, 40)] == [("/pods", 40)]
    # Unless they must be somebody's.
    assert [each.path for each in read_parents(hierarchy, 60)] == ["/pods", "/busy"]


def test_v1_those_heard_of_name_a_parent_whose_pages_are_hidden(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.group("/pods")
    hierarchy = find_memory_hierarchy(tree.places)
    assert read_parents(hierarchy, 30) == []
    (parent,) = read_parents(hierarchy, 30, {"/pods": 25})
    assert (parent.path, parent.dying, parent.least, parent.most) == ("/pods", 25, 25, 30)


def test_v1_without_dying_ones_nothing_is_read(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.group("/noise", {}, {"cache": 8 * PAGE})
    assert read_parents(find_memory_hierarchy(tree.places), 0) == []


def test_v1_where_their_number_is_not_known(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.group("/", {}, {"cache": PAGE})
    tree.group("/a", {}, {"cache": PAGE})
    (parent,) = read_parents(find_memory_hierarchy(tree.places), None)
    assert (parent.path, parent.dying) == ("/a", None)


def test_v2_swap_is_held_and_the_roots_own_memory_is_not(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    amounts = {"file": 100 * PAGE, "shmem": 80 * PAGE, "swap": 5 * PAGE}
    tree.group("/", visible=1, dying=41, held=amounts)
    tree.group("/batch", visible=0, dying=40, held=amounts)
    held = {"shmem": 80 * PAGE, "file": 20 * PAGE, "swap": 5 * PAGE}
    assert read_parents(find_memory_hierarchy(tree.places), 41) == [
        Parent("/batch", 40, True, held),
        Parent("/", 1, True, {}, occupied=True),
    ]


def test_amounts_are_found_wherever_they_stand() -> None:
    content = b"cache 5\nrss_huge 9\nrss 2\ntotal_cache 7\ntotal_rss 3"
    names = (b"cache", b"shmem", b"rss", b"swap")
    assert parse_amounts(content, names) == (5, 0, 2, 0)
    assert parse_amounts(content, names, b"total_") == (7, 0, 3, 0)

"""Who fills a file system, by the files that grew on it."""

from __future__ import annotations

from tests.diagnosis.told import at, event, solve_told

from nodescope.diagnosis.finding import Root
from nodescope.records.witness_tables import LimitRow, WrittenFileRow

MOUNT = "/data"
FILLER, OLD = "/system.slice/filler.service", "/system.slice/database.service"


def used(second: float, percent: int) -> LimitRow:
    return LimitRow(time_ns=at(second), name="disk", scope=MOUNT, used=percent, most=100)


def written(second: float, cgroup: str, inode: int, size: int) -> WrittenFileRow:
    comm = cgroup.rsplit("/", 1)[-1].split(".")[0]
    return WrittenFileRow(
        time_ns=at(second), mount=MOUNT, pid=inode, inode=inode, comm=comm, cgroup=cgroup,
        path=f"/data/{comm}", size_bytes=size, deleted=False, complete=True,
    )  # fmt: skip


FILLS = (used(0, 60), used(100, 70), used(120, 100))


def root_of(*rows: LimitRow | WrittenFileRow) -> tuple[Root, float, str]:
    said = f"100.0% of the space of {MOUNT} is in use"
    full = event(120, "fs_full", MOUNT, said, limit="disk", scope=MOUNT)
    (finding,) = solve_told([full], rows).findings
    chain = finding.chains[0]
    return chain.root, chain.links[-1].strength, chain.links[-1].statement


def test_whose_file_grew_between_two_looks_fills_it() -> None:
    looks = [written(100, OLD, 1, 55), written(100, FILLER, 2, 10), written(120, OLD, 1, 56),
             written(120, FILLER, 2, 39)]  # fmt: skip
    root, strength, said = root_of(*FILLS, *looks)
    assert root == Root("unit", "filler.service")
    assert strength > 4
    assert said.startswith("filler (2) of unit filler.service has /data/filler open for writing, ")
    assert "which grew by 29 B in 20 s; its files have 97% of what the file system" in said


def test_one_look_is_worth_less() -> None:
    root, strength, said = root_of(*FILLS, written(120, FILLER, 2, 40))
    assert root == Root("unit", "filler.service")
    assert strength < 3
    assert "seen once" in said


def test_a_large_file_that_did_not_grow_is_nobody_s_fault() -> None:
    looks = [written(100, OLD, 1, 55), written(120, OLD, 1, 55), written(120, FILLER, 2, 3)]
    root, _, _ = root_of(*FILLS, *looks)
    assert root == Root("file system", MOUNT)


def test_two_that_grew_alike_are_not_told_apart() -> None:
    looks = [written(100, OLD, 1, 20), written(100, FILLER, 2, 20), written(120, OLD, 1, 35),
             written(120, FILLER, 2, 35)]  # fmt: skip
    root, _, _ = root_of(*FILLS, *looks)
    assert root == Root("file system", MOUNT)

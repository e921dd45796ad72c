from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.perf import perf_records as make

from nodescope.perf.decode import decode, split
from nodescope.perf.processes import UNKNOWN_COMM, Attribution, Processes

CODE = 0x400000
LIBRARY = 0x7F0000000000


class Node:
    """A node whose records are fed by hand."""

    def __init__(self, proc: Path) -> None:
        self.processes = Processes(proc)

    def feed(self, *records: bytes) -> Attribution:
        self.batch = decode([split(0, b"".join(records))], cgroup=False)
        return self.processes.attribute(self.batch)

    def comms(self, *records: bytes) -> list[str]:
        return [self.processes.comms[number] for number in self.feed(*records).comm.tolist()]

    def places(self, *records: bytes) -> list[tuple[str, int] | None]:
        """Where the innermost user frame of each sample was: path and file offset."""
        found = self.feed(*records)
        user = self.batch.samples.user
        first = user.addresses[user.starts]
        modules, offsets = found.spaces.locate(found.space, first, self.batch.samples.time_ns)
        return [
            (self.processes.modules[module].path, offset) if module >= 0 else None
            for module, offset in zip(modules.tolist(), offsets.tolist(), strict=True)
        ]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def node(proc: Path) -> Node:
    return Node(proc)


def add_process(proc: Path, pid: int, comm: str, maps: str = "") -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "comm").write_text(comm + "\n")
    (proc / str(pid) / "maps").write_text(maps)


def at(pid: int, time: int, address: int = CODE + 0x10) -> bytes:
    return make.sample(pid, pid, time, user=[address])


def test_a_process_that_lives_within_one_batch(node: Node) -> None:
    records = (
        make.fork(100, 1, 10),
        make.comm(100, 100, 20, "ls", executed=True),
        make.mmap2(100, 21, CODE, 0x1000, "/bin/ls", offset=0x2000),
        at(100, 30),
        make.end(100, 40),
    )
    assert node.comms(*records) == ["ls"]
    assert node.places(*records) == [("/bin/ls", 0x2010)]


def test_between_fork_and_exec_a_child_is_its_parent(node: Node, proc: Path) -> None:
    add_process(proc, 7, "bash", f"{CODE:x}-{CODE + 0x1000:x} r-xp 00000000 08:01 5 /bin/bash\n")
    records = (
        make.fork(100, 7, 10),
        at(100, 15),
        make.comm(100, 100, 20, "ls", executed=True),
        make.mmap2(100, 21, CODE, 0x1000, "/bin/ls"),
        at(100, 30),
        make.end(100, 40),
    )
    assert node.comms(*records) == ["bash", "ls"]
    assert node.places(*records) == [("/bin/bash", 0x10), ("/bin/ls", 0x10)]


def test_while_it_executes_a_child_is_still_where_it_was(node: Node, proc: Path) -> None:
    add_process(proc, 7, "bash", f"{CODE:x}-{CODE + 0x1000:x} r-xp 00000000 08:01 5 /bin/bash\n")
    records = (
        make.fork(100, 7, 10),
        at(100, 15),
        make.comm(100, 100, 20, "ls", executed=True),
        at(100, 21),
        make.mmap2(100, 22, CODE, 0x1000, "/bin/ls"),
        at(100, 30),
        make.end(100, 40),
    )
    assert node.comms(*records) == ["bash", "ls", "ls"]
    assert node.places(*records) == [("/bin/bash", 0x10), ("/bin/bash", 0x10), ("/bin/ls", 0x10)]


def test_a_grandchild_inherits_through_parents_that_are_gone(node: Node) -> None:
    records = (
        make.fork(100, 1, 10),
        make.comm(100, 100, 11, "sh", executed=True),
        make.mmap2(100, 12, CODE, 0x1000, "/bin/sh"),
        make.fork(101, 100, 13),
        make.fork(102, 101, 14),
        make.end(100, 15),
        make.end(101, 16),
        at(102, 17),
        make.end(102, 18),
    )
    assert node.comms(*records) == ["sh"]
    assert node.places(*records) == [("/bin/sh", 0x10)]


def test_the_order_of_rings_does_not_matter(node: Node) -> None:
    assert node.comms(
        at(100, 30), make.comm(100, 100, 20, "late", executed=True), make.fork(100, 1, 10)
    ) == ["late"]


def test_what_survives_a_batch_is_known_in_the_next(node: Node) -> None:
    node.feed(
        make.fork(100, 1, 10),
        make.comm(100, 100, 20, "sleeper", executed=True),
        make.mmap2(100, 21, CODE, 0x1000, "/bin/sleeper"),
    )
    assert node.comms(at(100, 99)) == ["sleeper"]
    assert node.places(at(100, 100)) == [("/bin/sleeper", 0x10)]


def test_a_library_loaded_later_joins_the_image(node: Node) -> None:
    node.feed(
        make.fork(100, 1, 10),
        make.comm(100, 100, 20, "app", executed=True),
        make.mmap2(100, 21, CODE, 0x1000, "/bin/app", inode=1),
    )
    places = node.places(
        make.mmap2(100, 30, LIBRARY, 0x1000, "/lib/plugin.so", offset=0x5000, inode=2),
        at(100, 31, LIBRARY + 4),
        at(100, 32),
    )
    assert places == [("/lib/plugin.so", 0x5004), ("/bin/app", 0x10)]


def test_a_forked_worker_keeps_its_own_mappings(node: Node) -> None:
    node.feed(
        make.fork(100, 1, 10),
        make.comm(100, 100, 20, "server", executed=True),
        make.mmap2(100, 21, CODE, 0x1000, "/bin/server", inode=1),
    )
    node.feed(make.fork(200, 100, 30))
    node.feed(make.mmap2(200, 40, LIBRARY, 0x1000, "/lib/only-in-worker.so", inode=2))
    assert node.places(at(200, 50, LIBRARY + 1), at(200, 51), at(100, 52, LIBRARY + 1)) == [
        ("/lib/only-in-worker.so", 1),
        ("/bin/server", 0x10),
        None,
    ]


def test_threads_have_names_of_their_own(node: Node) -> None:
    node.feed(make.comm(100, 100, 5, "main"), make.fork(100, 100, 10, tid=101))
    assert node.comms(
        make.sample(100, 101, 20, user=[CODE]),
        make.comm(100, 101, 25, "worker"),
        make.sample(100, 101, 30, user=[CODE]),
        make.sample(100, 100, 31, user=[CODE]),
    ) == ["main", "worker", "main"]


def test_an_ended_process_is_forgotten_so_that_its_pid_may_come_again(node: Node) -> None:
    node.feed(make.fork(100, 1, 1), make.comm(100, 100, 2, "old", executed=True), make.end(100, 3))
    assert node.comms(at(100, 50)) == [UNKNOWN_COMM]


def test_a_process_from_before_is_asked_of_proc(node: Node, proc: Path) -> None:
    add_process(
        proc, 55, "daemon", f"{CODE:x}-{CODE + 0x1000:x} r-xp 00003000 fd:00 9 /usr/sbin/daemon\n"
    )
    assert node.comms(at(55, 1)) == ["daemon"]
    assert node.places(at(55, 2)) == [("/usr/sbin/daemon", 0x3010)]


def test_one_that_vanished_before_we_looked_is_unknown(node: Node) -> None:
    assert node.comms(at(4242, 1)) == [UNKNOWN_COMM]
    assert node.places(at(4242, 2)) == [None]


def test_lost_records_mean_that_nothing_remembered_is_trusted(node: Node, proc: Path) -> None:
    node.feed(make.fork(100, 1, 1), make.comm(100, 100, 2, "before", executed=True))
    node.feed(make.lost(5, 10))
    add_process(proc, 100, "after")
    assert node.comms(at(100, 20)) == ["after"]


def test_the_same_file_is_one_module_in_all_processes(node: Node) -> None:
    node.feed(
        *(
            record
            for pid in range(100, 150)
            for record in (
                make.fork(pid, 1, pid),
                make.comm(pid, pid, pid, "x", executed=True),
                make.mmap2(pid, pid, CODE, 0x1000, "/bin/x", inode=3),
                make.mmap2(pid, pid, 0x7FFF00000000, 0x2000, "[vdso]", inode=0),
                at(pid, pid),
                make.end(pid, pid + 1),
            )
        )
    )
    assert sorted(module.path for module in node.processes.modules) == ["/bin/x", "[vdso]"]


def test_a_jit_is_addressed_as_in_memory_and_per_process(node: Node) -> None:
    places = node.places(
        make.fork(100, 1, 1),
        make.comm(100, 100, 2, "node", executed=True),
        make.mmap2(100, 3, LIBRARY, 0x1000, "//anon", inode=0, offset=LIBRARY),
        at(100, 4, LIBRARY + 0x20),
    )
    assert places == [("//anon", LIBRARY + 0x20)]
    assert node.processes.modules[0].pid == 100


def test_garbage_addresses_are_nowhere(node: Node) -> None:
    records = [
        make.fork(100, 1, 1),
        make.comm(100, 100, 2, "x", executed=True),
        make.mmap2(100, 3, CODE, 0x1000, "/bin/x"),
    ]
    wild = [0x6F9C85CB0F137699, 2**47 + 5, CODE - 1, CODE + 0x1000, 2**63]
    assert node.places(*records, *(at(100, 5, address) for address in wild)) == [None] * 5


def test_a_batch_may_span_hours(node: Node) -> None:
    hour = 3_600_000_000_000
    assert node.comms(
        make.comm(100, 100, 5 * hour, "later"),
        make.comm(100, 100, 1 * hour, "sooner"),
        at(100, 2 * hour),
        at(100, 6 * hour),
    ) == ["sooner", "later"]
    assert np.all(node.batch.samples.pid == 100)

"""A stack has the same id wherever the same functions called each other."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path

from tests.exchange import perf_files as make
from tests.exchange.rows import read_rows
from tests.stack_ids import count_stack_ids

from nodescope.exchange.import_files import import_files
from nodescope.quantities import MILLISECOND_NS
from nodescope.symbols import Binaries

EVENT = make.Event()
T0, WALL = 5_000_000_000_000, 1_700_000_000_000_000_000
SAMPLES = 400


def find_libc() -> tuple[str, int, int, bytes]:
    """Return this machine's C library: its path, where its code is in the file, and its id."""
    maps = Path("/proc/self/maps").read_text()
    found = re.search(
        r"^([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(\S*/libc[.-]\S*)$", maps, re.MULTILINE
    )
    assert found is not None
    start, end, offset = (int(found[number], 16) for number in (1, 2, 3))
    status = os.stat(found[4])
    device = (os.major(status.st_dev), os.minor(status.st_dev))
    build_id = Binaries().open(os.getpid(), found[4], device, status.st_ino).build_id
    assert build_id is not None
    return found[4], offset, offset + end - start, build_id


def record_node(folder: Path, name: str, pid: int, base: int, order: list[int]) -> Path:
    """Import a capture of a node whose process has the library mapped at `base`."""
    path, first, last, build_id = find_libc()
    chance = random.Random(12)  # the same functions call each other on every node
    stacks = [
        [chance.randrange(first, last) for _ in range(chance.randrange(1, 30))] for _ in order
    ]
    data = EVENT.comm(pid, 0, "load")
    data += EVENT.mmap2(pid, 0, base, last, path, build_id=build_id)
    for number in range(SAMPLES):
        offsets = stacks[order[number % len(order)]]
        addresses = [base + offset for offset in offsets]
        data += EVENT.sample(pid, T0 + number * MILLISECOND_NS, user=addresses)
    file = folder / f"{name}.data"
    file.write_bytes(make.File([EVENT], data, hostname=name, clock=(T0, WALL)).content())
    import_files([file], folder / name)
    return folder / name


def test_two_nodes_that_run_the_same_binary_have_the_same_ids(tmp_path: Path) -> None:
    order = list(range(40))
    one = record_node(tmp_path, "alpha", 4021, 0x7F0000000000, order)
    other = record_node(tmp_path, "beta", 77, 0x7FFE12345000, order[::-1])
    ids = count_stack_ids(one, "load")
    assert ids == count_stack_ids(other, "load")
    assert sum(ids.values()) == SAMPLES
    # The ids tell stacks apart exactly as their functions do.
    stacks = Counter(row.stack for row in read_rows(one))
    assert sorted(ids.values()) == sorted(stacks.values())
    assert len(ids) > 30
    named = {name for stack in stacks for name in stack if not name.startswith(("+0x", "["))}
    assert len(named) > 30


def test_another_stack_has_another_id(tmp_path: Path) -> None:
    one = record_node(tmp_path, "alpha", 1, 0x7F0000000000, list(range(20)))
    other = record_node(tmp_path, "beta", 1, 0x7F0000000000, list(range(21)))
    mine, theirs = (count_stack_ids(archive, "load") for archive in (one, other))
    assert mine.keys() < theirs.keys()

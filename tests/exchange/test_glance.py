"""A file that is only looked at shows what its import shows."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.exchange import perf_files as make
from tests.exchange.rows import read_rows

from nodescope.errors import MalformedSource
from nodescope.exchange.glance import is_perf_data, read_glance
from nodescope.exchange.import_files import import_files
from nodescope.quantities import MILLISECOND_NS

CLOCK = make.Event()
T0 = 5_000_000_000_000
WALL = 1_700_000_000_000_000_000


def samples(count: int = 300) -> bytes:
    parts = []
    for i in range(count):
        at = T0 + (i * 7919 % count) * 10 * MILLISECOND_NS  # not in the order of time
        kernel, user = ([0xFFFFFFFF81000010], []) if i % 3 else ([], [0x401000 + i])
        parts.append(CLOCK.sample(10 + i % 4, at, cpu=i % 5, kernel=kernel, user=user))
    return b"".join(parts)


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(content)
    os.utime(path, ns=(WALL, WALL))
    return path


@pytest.mark.parametrize("clock", [None, (T0, WALL)])
@pytest.mark.parametrize("pipe", [False, True])
def test_the_same_samples_as_an_import(
    tmp_path: Path, clock: tuple[int, int] | None, pipe: bool
) -> None:
    file = make.File([CLOCK], CLOCK.comm(10, 0, "a") + samples(), clock=clock)
    path = write(tmp_path, file.pipe() if pipe else file.content())
    glance = read_glance(path)
    import_files([path], tmp_path / "archive")
    looked = zip(
        glance.time_ns.tolist(),
        glance.cpu.tolist(),
        glance.pid.tolist(),
        glance.kernel.tolist(),
        strict=True,
    )
    rows = read_rows(tmp_path / "archive")
    assert Counter(looked) == Counter((row.wall_ns, row.cpu, row.pid, row.kernel) for row in rows)
    assert glance.node == "alpha"
    assert glance.stopped is None


def test_a_cut_file_says_where(tmp_path: Path) -> None:
    content = make.File([CLOCK], samples(), clock=(T0, WALL)).pipe()
    glance = read_glance(write(tmp_path, content[:-20]))
    assert len(glance.time_ns) == 299
    assert "is whole up to byte" in (glance.stopped or "")


def test_a_file_without_samples_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, make.File([CLOCK], CLOCK.comm(10, 0, "a")).content())
    assert is_perf_data(path)
    with pytest.raises(MalformedSource, match="no samples"):
        read_glance(path)


def test_other_files_are_no_captures(tmp_path: Path) -> None:
    assert not is_perf_data(write(tmp_path, b"PERFIL"))
    assert not is_perf_data(tmp_path)
    assert not is_perf_data(tmp_path / "absent")


def test_a_file_cut_before_its_samples_says_that_it_is_cut(tmp_path: Path) -> None:
    content = make.File([CLOCK], samples(), clock=(T0, WALL)).pipe()
    at = content.index(samples()[:64])
    with pytest.raises(MalformedSource, match="no samples; it could be read up to byte"):
        read_glance(write(tmp_path, content[: at + 20]))

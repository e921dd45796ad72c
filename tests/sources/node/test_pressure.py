from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import PSI, write

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.node.pressure import Pressure, parse_pressure, read_pressure
from nodescope.sources.places import Places


def test_totals_are_taken() -> None:
    assert parse_pressure(PSI.format(some=12, full=3).encode()) == Pressure(12, 3)


def test_what_a_kernel_does_not_tell_is_none() -> None:
    some, full = PSI.format(some=12, full=3).splitlines()
    assert parse_pressure(some.encode()) == Pressure(12, None)  # cpu before v5.13
    assert parse_pressure(full.encode()) == Pressure(None, 3)  # irq
    assert parse_pressure(b"") == Pressure(None, None)


@pytest.mark.parametrize("content", [b"some\n", b"some total=x\n", b"some avg10=1 total=\n"])
def test_what_has_no_total_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_pressure(content)


def test_resources_the_node_has(tmp_path: Path) -> None:
    write(tmp_path / "proc/pressure", {"cpu": PSI.format(some=1, full=0),
                                       "io": PSI.format(some=2, full=1)})  # fmt: skip
    assert read_pressure(Places(tmp_path)) == {"cpu": Pressure(1, 0), "io": Pressure(2, 1)}


def test_kernels_without_pressure(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_pressure(Places(tmp_path))

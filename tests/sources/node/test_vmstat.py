from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.node.vmstat import parse_vmstat, read_vmstat


def test_counters_by_name() -> None:
    assert parse_vmstat(b"pgfault 12\npgmajfault 3\n") == {"pgfault": 12, "pgmajfault": 3}


@pytest.mark.parametrize("content", [b"pgfault\n", b"pgfault x\n"])
def test_other_lines_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_vmstat(content)


def test_this_machine_faults_pages() -> None:
    assert read_vmstat()["pgfault"] > 0


def test_a_node_without_it(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_vmstat(tmp_path)

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.node.meminfo import parse_meminfo, read_meminfo


def test_sizes_are_bytes_and_counts_are_counts() -> None:
    content = b"MemTotal:       24682416 kB\nActive(anon):      95048 kB\nHugePages_Total:      3\n"
    assert parse_meminfo(content) == {
        "MemTotal": 24_682_416 * 1024,
        "Active(anon)": 95_048 * 1024,
        "HugePages_Total": 3,
    }


@pytest.mark.parametrize("content", [b"MemTotal 5 kB\n", b"MemTotal:\n", b"MemTotal: x kB\n"])
def test_other_lines_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource, match="line 1"):
        parse_meminfo(content)


def test_this_machine_has_memory() -> None:
    assert read_meminfo()["MemTotal"] > 0


def test_a_node_without_it(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_meminfo(tmp_path)

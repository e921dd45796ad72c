from __future__ import annotations

import pytest

from nodescope.errors import MalformedSource
from nodescope.sources.node.load import Load, parse_count, parse_load, parse_procs_blocked


def test_the_load() -> None:
    assert parse_load(b"9.62 6.94 4.65 11/186 7175\n") == Load(9.62, 11)
    with pytest.raises(MalformedSource):
        parse_load(b"nonsense\n")


def test_blocked_processes() -> None:
    assert parse_procs_blocked(b"cpu 1\nprocs_running 3\nprocs_blocked 2\nsoftirq 9\n") == 2
    assert parse_procs_blocked(b"cpu 1\n") is None


def test_counts() -> None:
    assert parse_count(b"8\n") == 8
    assert parse_count(b"-1\n") is None
    assert parse_count(b"") is None

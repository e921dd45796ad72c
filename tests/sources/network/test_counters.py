"""`softnet_stat` and `softirqs`: what the columns are on which kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.network.synthetic_ena import CORES, SyntheticHost

from nodescope.errors import MalformedSource
from nodescope.sources.network.interrupts import parse_names
from nodescope.sources.network.softirqs import parse_softirqs
from nodescope.sources.network.softnet_stat import SoftnetCore, parse_softnet


def test_the_twelfth_column_is_the_backlog_and_the_thirteenth_the_core() -> None:
    fields = [0xFF, 2, 3, *[0] * 8, 0x3E8, 0x27]
    line = " ".join(f"{field:08x}" for field in fields).encode()
    assert parse_softnet(line, ()) == [SoftnetCore(39, 255, 2, 3, 1000)]


def test_kernels_with_fewer_columns_list_the_online_cores_in_order() -> None:
    lines = b"\n".join(b" ".join([b"%08x" % n] * 11) for n in (1, 2))
    assert parse_softnet(lines, [0, 4]) == [
        SoftnetCore(0, 1, 1, 1, None),
        SoftnetCore(4, 2, 2, 2, None),
    ]


def test_softirqs_of_many_cores(tmp_path: Path) -> None:
    host = SyntheticHost(tmp_path)
    host.net_rx[39] = 77
    host.write()
    counts = parse_softirqs((tmp_path / "proc/softirqs").read_bytes())
    assert list(counts.net_rx) == list(range(CORES))
    assert (counts.net_rx[39], counts.net_tx[39]) == (77, 7)
    assert counts.every[39] == 77 + 7 + 90_000 + 5 + 100 + 900


@pytest.mark.parametrize(
    "content",
    [b"", b"  CPU0\n  HI: 1\n", b"  CPU0 CPU1\nNET_RX: 1 2\nNET_TX: 1\n", b"CPU0\nNET_RX: x\n"],
)
def test_what_is_not_softirqs_is_said_to_be_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_softirqs(content)


@given(st.binary(max_size=300))
def test_whatever_comes_it_is_parsed_or_malformed(content: bytes) -> None:
    for parse in (parse_softirqs, parse_names, lambda text: parse_softnet(text, [0, 1])):
        try:
            parse(content)
        except MalformedSource:
            pass

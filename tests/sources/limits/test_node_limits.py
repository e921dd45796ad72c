from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import write

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.node_limits import (
    parse_statistics,
    parse_tasks,
    parse_tcp_pages,
    read_node_limits,
)
from nodescope.sources.limits.reading import Limit

ARP = (
    "entries  allocs   destroys table_fulls\n"
    "0000000c  00000021 00000008 0000000a\n"
    "0000000c  00000002 00000019 00000006\n"
)


def test_every_limit_that_the_kernel_has(tmp_path: Path) -> None:
    net, kernel = tmp_path / "sys/net", tmp_path / "sys/kernel"
    write(net / "netfilter", {"nf_conntrack_count": "90\n", "nf_conntrack_max": "100\n"})
    write(tmp_path / "sys/fs", {"file-nr": "1500\t300\t2000\n"})
    write(kernel, {"pid_max": "4194304\n", "threads-max": "1000\n"})
    write(tmp_path, {"loadavg": "5.20 2.87 1.95 8/135 26455\n"})
    write(net / "ipv4/neigh/default", {"gc_thresh3": "1024\n"})
    write(tmp_path / "net/stat", {"arp_cache": ARP})
    write(tmp_path / "net", {"sockstat": "TCP: inuse 3 orphan 0 tw 2 alloc 3 mem 151\n"})
    write(net / "ipv4", {"tcp_mem": "10\t20\t30\n"})
    files = KeptFiles()
    found = read_node_limits(files, tmp_path)
    files.close()
    assert found == [
        Limit("conntrack", "node", 90, 100),
        Limit("files", "node", 1200, 2000),
        Limit("threads", "node", 135, 1000),
        Limit("neighbours", "node", 12, 1024),
        Limit("tcp_memory", "node", 151, 30),
    ]


def test_what_is_absent_is_left_out_and_no_limit_is_none(tmp_path: Path) -> None:
    write(tmp_path / "sys/fs", {"file-nr": "1241\t0\t9223372036854775807\n"})
    files = KeptFiles()
    assert read_node_limits(files, tmp_path) == [Limit("files", "node", 1241, None)]
    assert files.refused == {}
    files.close()


def test_a_module_that_is_loaded_later_is_found(tmp_path: Path) -> None:
    files = KeptFiles()
    assert read_node_limits(files, tmp_path) == []
    folder = tmp_path / "sys/net/netfilter"
    write(folder, {"nf_conntrack_count": "1\n", "nf_conntrack_max": "4\n"})
    assert read_node_limits(files, tmp_path) == [Limit("conntrack", "node", 1, 4)]
    files.close()


def test_statistics_are_hexadecimal_and_of_all_cores() -> None:
    assert list(parse_statistics(ARP.encode(), "table_fulls", "entries")) == [16, 12]
    assert list(parse_statistics(ARP.encode(), "no such")) == []
    assert list(parse_statistics(b"", "entries")) == []
    with pytest.raises(MalformedSource):
        list(parse_statistics(b"entries\nxyz\n", "entries"))


@pytest.mark.parametrize("content", [b"", b"1 2 3", b"1 2 3 x 5"])
def test_a_load_without_tasks_is_none(content: bytes) -> None:
    assert parse_tasks(content) is None


def test_pages_of_tcp() -> None:
    assert parse_tcp_pages(b"sockets: used 25\nTCP: inuse 3 mem 7\nUDP: inuse 0 mem 9\n") == 7
    assert parse_tcp_pages(b"UDP: inuse 0 mem 9\n") is None

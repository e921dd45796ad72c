from __future__ import annotations

from pathlib import Path

from tests.kernel_files import write

from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits import hardware_counts, kernel_counts
from nodescope.sources.limits.kernel_counts import parse_conntrack_counts, read_kernel_counts

CONNTRACK = (
    "entries  found insert_failed drop early_drop icmp_error\n"
    "00000014  00000000 {failed:08x} {drop:08x} {early:08x} 00000000\n"
    "00000014  00000000 00000001 00000001 00000000 00000000\n"
)
NETSTAT = (
    "TcpExt: SyncookiesSent ListenOverflows TCPReqQFullDrop\nTcpExt: 0 12 3\n"
    "IpExt: InNoRoutes\nIpExt: 0\n"
)


def test_every_counter_that_the_kernel_has(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    write(sys / "kernel", {"oops_count": "1\n", "warn_count": "2\n"})
    write(proc / "sys/kernel", {"hung_task_detect_count": "8\n"})
    write(proc / "net", {"netstat": NETSTAT})
    write(
        proc / "net/stat",
        {
            "nf_conntrack": CONNTRACK.format(failed=2, drop=0x28, early=5),
            "arp_cache": "entries table_fulls\n00000001 00000002\n",
            "ndisc_cache": "entries table_fulls\n00000001 00000001\n",
        },
    )
    files = KeptFiles()
    found = {count.name: count.value for count in read_kernel_counts(files, proc, sys)}
    files.close()
    assert found == {
        "oops_count": 1,
        "warn_count": 2,
        "hung_task_detect_count": 8,
        "ListenOverflows": 12,
        "TCPReqQFullDrop": 3,
        "conntrack_drop": 0x28 + 1 - 3,
        "conntrack_early_drop": 5,
        "neighbour_table_fulls": 3,
    }


def test_a_race_of_two_equal_connections_is_no_full_table() -> None:
    counts = parse_conntrack_counts(CONNTRACK.format(failed=7, drop=7, early=0).encode(), "/a")
    assert [(count.subject, count.value) for count in counts] == [("/a", 0), ("/a", 0)]
    assert parse_conntrack_counts(b"entries found\n00000001 00000000\n") == []


def test_every_counter_rises_to_a_kind_that_there_is() -> None:
    kinds = {*kernel_counts.KINDS.values(), *hardware_counts.KINDS.values()}
    assert kinds <= EVENT_KINDS.keys()

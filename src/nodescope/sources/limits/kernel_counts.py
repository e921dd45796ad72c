"""Counters of the kernel and of its network that only trouble raises.

They count also what the log does not show: its lines are limited in rate, may be overwritten,
and after ten hung tasks the kernel is silent (`hung_task_warnings`). `/sys/kernel/oops_count`
and `warn_count` exist since v6.2, `softlockup_count` and its like since v6.16,
`hung_task_detect_count` since v6.18.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.node_limits import parse_statistics
from nodescope.sources.limits.reading import TroubleCount

_KERNEL = ("oops_count", "warn_count", "softlockup_count", "hardlockup_count", "rcu_stall_count")
_HUNG = "hung_task_detect_count"
_TCP = ("ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies", "TCPAbortOnMemory")
_CONNTRACK = ("drop", "early_drop", "insert_failed")
CONNTRACK_FULL = "conntrack_drop"
CONNTRACK_EVICTED = "conntrack_early_drop"
KINDS = {
    "oops_count": "kernel_oops",
    "warn_count": "kernel_warning",
    "softlockup_count": "soft_lockup",
    "hardlockup_count": "hard_lockup",
    "rcu_stall_count": "rcu_stall",
    _HUNG: "hung_task",
    "ListenOverflows": "syn_queue_full",
    "TCPReqQFullDrop": "syn_queue_full",
    "TCPReqQFullDoCookies": "syn_queue_full",
    "TCPAbortOnMemory": "tcp_memory",
    "neighbour_table_fulls": "neighbour_full",
}
"""The kind of event that a rise of a counter is; `conntrack_drop` needs a second look."""


def read_kernel_counts(files: KeptFiles, proc: Path, sys: Path) -> list[TroubleCount]:
    """Return the counters that this kernel has."""
    found = []
    paths = {name: sys / "kernel" / name for name in _KERNEL}
    paths[_HUNG] = proc / "sys/kernel" / _HUNG
    for name, path in paths.items():
        content = (files.read(path) or b"").strip()
        if content.isdigit():
            found.append(TroubleCount(name, "", int(content)))
    found += parse_tcp_counts(files.read(proc / "net/netstat") or b"")
    found += parse_conntrack_counts(files.read(proc / "net/stat/nf_conntrack") or b"")
    full = [*parse_statistics(files.read(proc / "net/stat/arp_cache") or b"", "table_fulls")]
    full += parse_statistics(files.read(proc / "net/stat/ndisc_cache") or b"", "table_fulls")
    if full:
        found.append(TroubleCount("neighbour_table_fulls", "", sum(full)))
    return found


def parse_tcp_counts(netstat: bytes) -> list[TroubleCount]:
    """Return counters of `/proc/net/netstat`: a line of names, then a line of numbers."""
    lines = [line for line in netstat.split(b"\n") if line.startswith(b"TcpExt:")]
    if len(lines) != 2:
        return []
    values = dict(zip(lines[0].split(), lines[1].split(), strict=False))
    return [
        TroubleCount(name, "", int(value))
        for name in _TCP
        if (value := values.get(name.encode(), b"")).isdigit()
    ]


def parse_conntrack_counts(content: bytes, subject: str = "") -> list[TroubleCount]:
    """Return packets dropped and entries evicted, of one network namespace.

    `drop` also counts packets that lost a race to insert the same connection, as two DNS queries
    of one socket do: those are counted in `insert_failed` as well and are subtracted.
    """
    found = dict(zip(_CONNTRACK, parse_statistics(content, *_CONNTRACK), strict=False))
    if len(found) != len(_CONNTRACK):
        return []
    return [
        TroubleCount(CONNTRACK_FULL, subject, max(0, found["drop"] - found["insert_failed"])),
        TroubleCount(CONNTRACK_EVICTED, subject, found["early_drop"]),
    ]

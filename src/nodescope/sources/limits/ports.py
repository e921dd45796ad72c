"""Local ports that connections to one destination use, against those that there are.

A connection takes a port of `ip_local_port_range` that no other to the same destination has;
closed ones keep theirs for a minute. The tables are long, so `/proc/net/sockstat` decides
whether they are worth reading.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.node_limits import NODE
from nodescope.sources.limits.reading import Limit

_WORTH_READING = 0.5  # of the ports, in all sockets together
_LISTEN = b"0A"


def read_ports(files: KeptFiles, proc: Path) -> Limit | None:
    """Return the ports in use for the most used destination; None if few sockets are open."""
    ports = _parse_range(files.read(proc / "sys/net/ipv4/ip_local_port_range") or b"")
    if ports is None:
        return None
    sockets = parse_sockets(files.read(proc / "net/sockstat") or b"")
    sockets += parse_sockets(files.read(proc / "net/sockstat6") or b"")
    if sockets < _WORTH_READING * len(ports):
        return None
    used: Counter[tuple[bytes, bytes]] = Counter()
    for table in ("tcp", "tcp6"):
        used.update(count_by_destination(files.read(proc / "net" / table) or b"", ports))
    most_used = max(used.values(), default=0)
    return Limit("ports", NODE, min(most_used, len(ports)), len(ports))


def _parse_range(content: bytes) -> range | None:
    fields = content.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    ports = range(int(fields[0]), int(fields[1]) + 1)
    return ports or None


def parse_sockets(sockstat: bytes) -> int:
    """Return TCP sockets in use and those that were closed a moment ago (`tw`)."""
    for line in sockstat.split(b"\n"):
        if line.startswith((b"TCP:", b"TCP6:")):
            fields = line.split()
            values = dict(zip(fields[1::2], fields[2::2], strict=False))
            counts = (values.get(b"inuse", b"0"), values.get(b"tw", b"0"))
            return sum(int(count) for count in counts if count.isdigit())
    return 0


def count_by_destination(content: bytes, ports: range) -> Counter[tuple[bytes, bytes]]:
    """Return how many local ports of a range each pair of addresses uses (`/proc/net/tcp`)."""
    used: Counter[tuple[bytes, bytes]] = Counter()
    for line in content.split(b"\n")[1:]:
        fields = line.split(None, 4)
        if len(fields) < 4 or fields[3] == _LISTEN:
            continue
        address, _, port = fields[1].partition(b":")
        if port and int(port, 16) in ports:
            used[address, fields[2]] += 1
    return used

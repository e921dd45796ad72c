"""TCP sockets of a network namespace, from `/proc/PID/net/tcp` and `tcp6` (proc_pid_net(5)).

An address is written as 32-bit words of the machine's byte order in hexadecimal.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import source_error

_MAX_BYTES = 64 << 20
_ESTABLISHED, _LISTEN = 0x01, 0x0A


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One line of the table."""

    address: str
    port: int
    remote: str
    remote_port: int
    state: int
    inode: int

    @property
    def established(self) -> bool:
        return self.state == _ESTABLISHED

    @property
    def listening(self) -> bool:
        return self.state == _LISTEN

    @property
    def is_local(self) -> bool:
        """Return whether the other end is on this machine, as far as its address says."""
        return self.remote == self.address or ipaddress.ip_address(self.remote).is_loopback


def read_tcp_sockets(net: Path) -> list[TcpSocket]:
    """Read both tables of a namespace, by its `/proc/PID/net`; without IPv6 there is one."""
    found: list[TcpSocket] = []
    for table in ("tcp", "tcp6"):
        try:
            with open(net / table, "rb") as file:
                found += parse_tcp_sockets(file.read(_MAX_BYTES))
        except FileNotFoundError as error:
            if table == "tcp":
                raise source_error(net / table, error) from error
        except OSError as error:
            raise source_error(net / table, error) from error
    return found


def parse_tcp_sockets(content: bytes) -> list[TcpSocket]:
    """Return the sockets of one table; a torn line is passed over."""
    found = []
    for line in content.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or not fields[9].isdigit():
            continue
        try:
            address, port = _parse_end(fields[1])
            remote, remote_port = _parse_end(fields[2])
            state = int(fields[3], 16)
        except (ValueError, struct.error):
            continue
        found.append(TcpSocket(address, port, remote, remote_port, state, int(fields[9])))
    return found


def _parse_end(text: bytes) -> tuple[str, int]:
    written, _, port = text.partition(b":")
    raw = bytes.fromhex(written.decode("ascii", "replace"))
    if len(raw) not in (4, 16):
        raise ValueError(written)
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    # The kernel printed each word as a number: on a little-endian machine the bytes are turned.
    packed = struct.pack(f"!{len(words)}I", *words) if _LITTLE else raw
    address = ipaddress.ip_address(packed)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address), int(port, 16)


_LITTLE = struct.pack("=H", 1) == b"\x01\x00"

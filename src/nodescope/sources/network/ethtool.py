"""A driver's identity and counters: the SIOCETHTOOL ioctl (include/uapi/linux/ethtool.h).

Works without the `ethtool` program and without privileges. A driver that counts
nothing has no statistics; that is not an error.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from nodescope.errors import SourceError, source_error

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
_GSTRINGS = 0x1B
_GSTATS = 0x1D
_GSSET_INFO = 0x37
_STATISTICS = 1  # the string set ETH_SS_STATS
_NAME = 32  # ETH_GSTRING_LEN
_DRIVER = struct.Struct("=I32s32s32s32s32s12sIIIII")
_SPARE = 4096  # statistics; a driver may have got more of them since we asked how many
_UNKNOWN = (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL, errno.ENOTTY)


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """A driver's own description; None where it gives none."""

    driver: str | None
    version: str | None
    firmware: str | None
    bus: str | None


class Ethtool(Protocol):
    """Who is asked about a network device."""

    def driver(self, nic: str) -> DriverInfo | None:
        """None where the driver does not answer, or the device is gone."""
        ...

    def statistics(self, nic: str) -> Mapping[str, int]:
        """By name as the driver gives it; empty where it counts nothing."""
        ...

    def close(self) -> None: ...


class KernelEthtool:
    """The kernel's own answers, for the network namespace we are in."""

    def __init__(self) -> None:
        try:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        except OSError as error:
            raise source_error("ethtool", error) from error
        self._names: dict[str, list[str]] = {}

    def driver(self, nic: str) -> DriverInfo | None:
        request = _DRIVER.pack(_GDRVINFO, *[b""] * 6, *[0] * 5)
        answer = self._ask(nic, request, len(request))
        return None if answer is None else parse_driver(answer)

    def statistics(self, nic: str) -> Mapping[str, int]:
        count = self._count(nic)
        if not count:
            self._names.pop(nic, None)
            return {}
        names = self._names.get(nic)
        if names is None or len(names) != count:
            names = self._names[nic] = self._read_names(nic, count)
        room = 8 + 8 * (count + _SPARE)
        answer = self._ask(nic, struct.pack("=II", _GSTATS, count), room)
        return {} if answer is None else parse_statistics(answer, names)

    def close(self) -> None:
        self._socket.close()

    def _count(self, nic: str) -> int:
        request = struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _STATISTICS, 0)
        answer = self._ask(nic, request, len(request))
        if answer is None:
            return 0
        _, _, mask, count = struct.unpack_from("=IIQI", answer)
        return int(count) if mask else 0

    def _read_names(self, nic: str, count: int) -> list[str]:
        room = 12 + _NAME * (count + _SPARE)
        answer = self._ask(nic, struct.pack("=III", _GSTRINGS, _STATISTICS, count), room)
        return [] if answer is None else parse_names(answer)

    def _ask(self, nic: str, request: bytes, room: int) -> bytes | None:
        """The answer to a request; None if the driver does not know it or the device is gone."""
        buffer = ctypes.create_string_buffer(request, room)
        ifreq = struct.pack("=16sQ8x", nic.encode()[:15], ctypes.addressof(buffer))
        try:
            fcntl.ioctl(self._socket, _SIOCETHTOOL, ifreq)
        except OSError as error:
            if error.errno in _UNKNOWN:
                return None
            raise source_error(f"ethtool of {nic}", error) from error
        return buffer.raw


def parse_driver(answer: bytes) -> DriverInfo:
    """`struct ethtool_drvinfo`."""
    if len(answer) < _DRIVER.size:
        raise SourceError("ethtool", f"{len(answer)} bytes are no driver's answer")
    _, *texts = _DRIVER.unpack_from(answer)
    driver, version, firmware, bus = (_text(text) for text in texts[:4])
    return DriverInfo(driver, version, firmware, bus)


def parse_names(answer: bytes) -> list[str]:
    """`struct ethtool_gstrings`."""
    count = struct.unpack_from("=I", answer, 8)[0]
    starts = range(12, 12 + _NAME * count, _NAME)
    return [_text(answer[at : at + _NAME]) or "" for at in starts]


def parse_statistics(answer: bytes, names: list[str]) -> dict[str, int]:
    """`struct ethtool_stats`, by name; nothing if it is not as many as there are names."""
    count = struct.unpack_from("=I", answer, 4)[0]
    if count != len(names):
        return {}
    # Values are 64 bits without a sign; the archive's numbers have one.
    values = struct.unpack_from(f"={count}q", answer, 8)
    return {name: value for name, value in zip(names, values, strict=True) if name}


def _text(raw: bytes) -> str | None:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None

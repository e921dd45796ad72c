"""Telling systemd how we are: the protocol of sd_notify(3).

A datagram of `KEY=value` lines goes to the socket named by `$NOTIFY_SOCKET`: a
path, or with a leading `@` a name in the abstract namespace. Without it nothing
is sent. `$WATCHDOG_USEC` is how often `WATCHDOG=1` is expected at the latest,
if `$WATCHDOG_PID` is unset or ours; half of it is the usual pace.

The supervisor going away is not the recorder's problem: a message that cannot
be sent is dropped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

SOONEST_NS = 100_000_000  # a watchdog that wants to hear more often than this is a mistake


class Notifier:
    """The connection to whoever supervises us, or to nobody."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, pid: int | None = None
    ) -> None:
        variables = os.environ if environment is None else environment
        self._address = _parse_address(variables.get("NOTIFY_SOCKET", ""))
        self.watchdog_interval_ns = _parse_watchdog(variables, os.getpid() if pid is None else pid)
        self._socket: socket.socket | None = None
        if self._address is not None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)  # a full queue must not stop the recorder

    def pace_ns(self, usual_ns: int) -> int:
        """How often to say that we live: as is usual, or sooner if the watchdog wants it."""
        if self.watchdog_interval_ns is None:
            return usual_ns
        return min(usual_ns, max(self.watchdog_interval_ns, SOONEST_NS))

    def ready(self, status: str) -> None:
        """Set-up is over: the recorder records."""
        self._send("READY=1", _status_line(status))

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(_status_line(status))

    def alive(self) -> None:
        """Reset the watchdog, if one is set."""
        if self.watchdog_interval_ns is not None:
            self._send("WATCHDOG=1")

    def stopping(self, status: str) -> None:
        """The end has begun; sealing may take a moment."""
        self._send("STOPPING=1", _status_line(status))

    def close(self) -> None:
        """Give the socket back; later messages are dropped."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, *lines: str) -> None:
        if self._socket is None or self._address is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            pass  # gone or full; the watchdog is the supervisor's means, not ours


def _parse_address(name: str) -> str | None:
    """The socket's address; other kinds than AF_UNIX (vsock:…) are for virtual machines."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else None


def _parse_watchdog(variables: Mapping[str, str], pid: int) -> int | None:
    """How often to say that we live: half of what the supervisor allows."""
    microseconds = variables.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or int(microseconds) == 0:
        return None
    if variables.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None  # meant for another process: our parent's environment
    return int(microseconds) * 1000 // 2


def _status_line(status: str) -> str:
    return "STATUS=" + " ".join(status.split())  # a line break would start another variable

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from nodescope.sources.processes.listening_sockets import parse_ports, parse_unix, read_listening
from nodescope.sources.systemd.unit_processes import parse_process

_TCP = b"""\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1235 1
   2: broken
"""
_UNIX = b"""\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 15000 /run/agent.sock
0000000000000000: 00000003 00000000 00000000 0001 03 15001 /run/agent.sock
0000000000000000: 00000003 00000000 zz 0001 03 15001
"""


def test_ports_that_listen() -> None:
    assert parse_ports(_TCP, "tcp6") == {1234: "tcp:22"}


def test_sockets_that_listen() -> None:
    assert parse_unix(_UNIX) == {15000: "unix:/run/agent.sock"}


@pytest.mark.live
def test_our_own_port_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"tcp:{port}" in read_listening(Path("/proc"), {os.getpid()})
    assert read_listening(Path("/proc"), {1 << 30}) == ()


def test_a_process_is_read_whatever_it_calls_itself() -> None:
    stat = b"42 (a) b) S 7 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12300 1 1"
    process = parse_process(42, stat, b"sh\0-c\0x\0", 100)
    assert process is not None
    assert (process.parent, process.comm, process.command) == (7, "a) b", "sh -c x")
    assert process.started_us == 123_000_000
    assert parse_process(42, b"nonsense", b"", 100) is None

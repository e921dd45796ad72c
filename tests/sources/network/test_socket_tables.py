"""Sockets and who is connected to whom: the formats, and real sockets of this process."""

from __future__ import annotations

import errno
import os
import socket
import struct
import tempfile
from pathlib import Path

import pytest

from nodescope.sources.network.tcp_sockets import parse_tcp_sockets, read_tcp_sockets
from nodescope.sources.network.unix_sockets import file_of, parse_dump, read_unix_sockets

_HEAD = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid tmo inode\n"
)


def _line(local: str, remote: str, state: str, inode: int) -> bytes:
    rest = f"00000000:00000000 00:00000000 00000000 0 0 {inode} 1"
    return f"   0: {local} {remote} {state} {rest}\n".encode()


@pytest.mark.skipif(struct.pack("=H", 1) != b"\x01\x00", reason="the lines are little-endian")
def test_addresses_are_read_as_the_kernel_prints_them() -> None:
    mapped = "0000000000000000FFFF00000100007F"
    content = _HEAD + b"".join((
        _line("0100007F:1F90", "0A0200C0:01BB", "01", 7),
        _line(f"{mapped}:1F90", f"{mapped}:C001", "01", 8),
        _line("00000000000000000000000000000000:0016", "0" * 32 + ":0000", "0A", 9),
    ))  # fmt: skip
    out, inner, listening = parse_tcp_sockets(content)
    assert (out.address, out.port, out.remote, out.remote_port) == (
        "127.0.0.1", 8080, "192.0.2.10", 443,
    )  # fmt: skip
    assert out.established
    assert not out.is_local
    assert (inner.address, inner.is_local) == ("127.0.0.1", True)
    assert (listening.address, listening.port, listening.listening) == ("::", 22, True)


def test_torn_lines_are_passed_over() -> None:
    content = _HEAD + b"  0: nonsense\n" + _line("zz:1", "00000000:0000", "0A", 5)
    assert parse_tcp_sockets(content) == []


def test_a_real_connection_is_seen_from_both_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            with accepted:
                found = read_tcp_sockets(Path("/proc/self/net"))
                by_inode = {each.inode: each for each in found}
                assert by_inode[os.fstat(server.fileno()).st_ino].listening
                assert by_inode[os.fstat(accepted.fileno()).st_ino].port == port
                assert by_inode[os.fstat(client.fileno()).st_ino].remote_port == port


def test_peers_of_unix_sockets_are_known(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        accepted, _ = server.accept()
        with accepted:
            found = {each.inode: each for each in read_unix_sockets(Path("/proc/self/ns/net"))}
            ours = found[os.fstat(accepted.fileno()).st_ino]
            theirs = found[os.fstat(client.fileno()).st_ino]
            assert found[os.fstat(server.fileno()).st_ino].listening
            assert (ours.name, ours.peer) == (path, theirs.inode)
            assert (theirs.name, theirs.peer) == ("", ours.inode)
            listening = found[os.fstat(server.fileno()).st_ino]
            assert listening.file is not None
            assert ours.file == listening.file
            assert theirs.file is None


def test_a_socket_is_known_by_its_file_and_not_by_its_name() -> None:
    """On tmpfs, where sockets of engines lie: other file systems may show another device."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        made = []
        for name in ("a", "b"):
            os.mkdir(f"{folder}/{name}")
            server = socket.socket(socket.AF_UNIX)
            server.bind(f"{folder}/{name}/docker.sock")
            server.listen()
            made.append(server)
        found = {each.inode: each for each in read_unix_sockets(Path("/proc/self/ns/net"))}
        files = [found[os.fstat(each.fileno()).st_ino].file for each in made]
        assert files == [file_of(Path(folder) / name / "docker.sock") for name in ("a", "b")]
        assert files[0] != files[1]
        for server in made:
            server.close()


def test_an_abstract_name_is_shown_as_the_kernel_shows_it() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0nodescope-{os.getpid()}")
        server.listen()
        names = {each.name for each in read_unix_sockets(Path("/proc/self/ns/net"))}
    assert f"@nodescope-{os.getpid()}" in names


def test_a_kernel_without_the_dump_says_so() -> None:
    body = struct.pack("=i", -errno.ENOENT)
    answer = struct.pack("=IHHII", 16 + len(body), 2, 0, 1, 0) + body
    with pytest.raises(OSError, match="No such file"):
        parse_dump(answer)


def test_a_dump_that_is_cut_ends() -> None:
    assert parse_dump(b"") == ([], True)
    assert parse_dump(b"\0" * 40) == ([], False)

from __future__ import annotations

from pathlib import Path

from tests.kernel_files import write

from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.ports import count_by_destination, parse_sockets, read_ports
from nodescope.sources.limits.reading import Limit

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"


def _line(port: int, remote: str, state: str = "01") -> str:
    return f"   0: 0100007F:{port:04X} {remote} {state} 00000000:00000000 00:00000000\n"


def _tree(proc: Path, sockets: int, closed: int, lines: list[str]) -> None:
    write(proc / "sys/net/ipv4", {"ip_local_port_range": "30000\t30003\n"})
    sockstat = f"TCP: inuse {sockets} orphan 0 tw {closed} alloc 3 mem 151\n"
    write(proc / "net", {"sockstat": sockstat, "tcp": HEAD + "".join(lines)})


def _read(proc: Path) -> Limit | None:
    files = KeptFiles()
    found = read_ports(files, proc)
    files.close()
    return found


def test_ports_of_the_most_used_destination(tmp_path: Path) -> None:
    one, other = "0A00000A:1F40", "0B00000A:1F40"
    lines = [_line(30000, one), _line(30001, one, "06"), _line(30000, other)]
    lines += [_line(22, one), _line(30002, one, "0A")]  # not of the range; listens
    _tree(tmp_path, 3, 2, lines)
    assert _read(tmp_path) == Limit("ports", "node", 2, 4)


def test_a_long_table_is_not_read_for_few_sockets(tmp_path: Path) -> None:
    _tree(tmp_path, 1, 0, [])
    (tmp_path / "net/tcp").unlink()
    assert _read(tmp_path) is None
    assert parse_sockets(b"TCP6: inuse 4\n") == 4
    assert not count_by_destination(b"", range(4))

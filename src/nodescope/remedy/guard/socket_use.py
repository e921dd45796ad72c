"""Who is connected to a group of processes, over TCP and Unix sockets, as `ss -p` would show.

A connection counts as somebody's use if it came in by a socket that is listened on. What a
process connected to by itself shows that it uses others, not that others use it; but a
connection to another machine is how an agent serves its users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.remedy.guard.surroundings import Client, SocketUse
from nodescope.sources.network.tcp_sockets import TcpSocket, read_tcp_sockets
from nodescope.sources.network.unix_sockets import UnixSocket, read_unix_sockets
from nodescope.sources.processes.process_table import ProcessSeen, ProcessTable

_OUT_OF_SIGHT = "a process that cannot be seen"


class SocketReading:
    """Reads the sockets of network namespaces, each once."""

    def __init__(
        self, proc: Path, table: ProcessTable, ignored: Collection[int], names: Mapping[str, str]
    ) -> None:
        self.table = table
        self._proc = proc
        self._ignored = ignored  # processes whose connections are our own
        self._names = names  # of containers, by id
        self._tcp: dict[str, list[TcpSocket]] = {}
        self._unix: dict[str, list[UnixSocket]] = {}

    def use_of(
        self, members: Collection[ProcessSeen], also_named: Collection[str] = ()
    ) -> SocketUse:
        """Return the use of these processes' sockets, and of Unix sockets with these names."""
        pids = {each.pid for each in members}
        own = {inode for each in members for inode in each.sockets or ()}
        unseen = []
        hidden = sum(each.sockets is None for each in members)
        if hidden:
            unseen.append(f"the sockets of {hidden} of its processes (needs root)")
        listens: set[str] = set()
        clients: Counter[tuple[str, str]] = Counter()
        reaches: set[str] = set()
        by_network = {each.network: each.pid for each in members}
        if None in by_network:
            unseen.append("the network namespace of some of its processes (needs root)")
        for network, pid in by_network.items():
            if network is None:
                continue
            try:
                self._take_tcp(self._read_tcp(network, pid), own, pids, listens, clients, reaches)
                sockets = self._read_unix(network, pid)
                self._take_unix(sockets, own, pids, also_named, listens, clients)
            except SourceError as error:
                unseen.append(f"sockets of its network namespace ({error.reason})")
        found = tuple(Client(at, who, count) for (at, who), count in sorted(clients.items()))
        return SocketUse(tuple(sorted(listens)), found, tuple(sorted(reaches)), tuple(unseen))

    def _read_tcp(self, network: str, pid: int) -> list[TcpSocket]:
        if network not in self._tcp:
            self._tcp[network] = read_tcp_sockets(self._proc / str(pid) / "net")
        return self._tcp[network]

    def _read_unix(self, network: str, pid: int) -> list[UnixSocket]:
        if network not in self._unix:
            self._unix[network] = read_unix_sockets(self._proc / str(pid) / "ns/net")
        return self._unix[network]

    def _take_tcp(
        self,
        sockets: list[TcpSocket],
        own: set[int],
        pids: set[int],
        listens: set[str],
        clients: Counter[tuple[str, str]],
        reaches: set[str],
    ) -> None:
        served = {each.port for each in sockets if each.listening}
        own_ports = {each.port for each in sockets if each.listening and each.inode in own}
        listens.update(f"tcp:{port}" for port in own_ports)
        ends = {(each.address, each.port, each.remote, each.remote_port): each for each in sockets}
        for each in sockets:
            if not each.established:
                continue
            came_in = each.port in own_ports or (each.port in served and each.inode in own)
            if not came_in:
                if each.inode in own and not each.is_local:
                    reaches.add(f"{each.remote}:{each.remote_port}")
                continue
            other = ends.get((each.remote, each.remote_port, each.address, each.port))
            if other is None:
                clients[f"tcp:{each.port}", each.remote] += 1
            elif (who := self._describe_holders(other.inode, pids)) is not None:
                clients[f"tcp:{each.port}", who] += 1

    def _take_unix(
        self,
        sockets: list[UnixSocket],
        own: set[int],
        pids: set[int],
        also_named: Collection[str],
        listens: set[str],
        clients: Counter[tuple[str, str]],
    ) -> None:
        by_inode = {each.inode: each for each in sockets}
        names = {each.name for each in sockets if each.listening and each.inode in own}
        names.update(also_named)
        listens.update(f"unix:{name}" for name in names if name)
        counted: set[tuple[int, int]] = set()
        for each in sockets:
            if each.peer is None or not each.name or each.listening:
                continue
            if each.name in names or each.inode in own:
                counted.add((each.inode, each.peer))
        for each in sockets:  # datagram sockets: only the client's side knows of the other
            served = by_inode.get(each.peer or 0)
            if served is None or not served.name or served.peer == each.inode:
                continue
            if served.inode in own or served.name in names:
                counted.add((served.inode, each.inode))
        for inode, peer in counted:
            who = self._describe_holders(peer, pids)
            if who is not None:
                clients[f"unix:{by_inode[inode].name}", who] += 1

    def _describe_holders(self, inode: int, pids: set[int]) -> str | None:
        """Return who has the other end; None if that is the subject itself, or ourselves."""
        holders = self.table.having(inode)
        if not holders:
            return _OUT_OF_SIGHT
        others = [each for each in holders if each.pid not in pids]
        if not others or any(each.pid in self._ignored for each in others):
            return None
        return self.describe(others[0])

    def holders_of_clients(self, file: tuple[int, int]) -> list[ProcessSeen]:
        """Return the processes connected to the Unix socket of a file, in any namespace."""
        by_network = {each.network: each.pid for each in self.table.processes.values()}
        found: dict[int, ProcessSeen] = {}
        for network, pid in by_network.items():
            if network is None:
                continue
            try:
                sockets = self._read_unix(network, pid)
            except SourceError:
                continue  # that process ended: its namespace is gone, or seen through the next look
            for each in sockets:
                if each.peer is not None and not each.listening and each.file == file:
                    found |= {holder.pid: holder for holder in self.table.having(each.peer)}
        return [each for pid, each in found.items() if pid not in self._ignored]

    def describe(self, process: ProcessSeen) -> str:
        """Return whose a process is, in words."""
        owner = process.owner
        if owner is not None and owner.container_id:
            name = self._names.get(owner.container_id, owner.container_id[:12])
            return f"container {name}"
        if owner is not None and owner.pod_uid:
            return f"pod {owner.pod_uid}"
        if owner is not None and owner.unit:
            return "systemd" if owner.unit == "init.scope" else owner.unit
        return f"process {process.comm} ({process.pid})"

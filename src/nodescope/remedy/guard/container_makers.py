"""Who makes a container anew, again and again, under one name.

Such a container has a new id each time, and stopping it changes nothing. Its maker is known by
the label of podman's units, or if it was seen at it: connected to the socket of the engine,
with a command of its own or of a parent that runs or creates a container of this name. A
process that only names the container, or is only connected, is not taken for its maker. Of
several, none is chosen.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.judgement.container_loops import LoopWatch
from nodescope.judgement.loop_rules import CONTAINER_WITHIN_NS
from nodescope.records.action import Target
from nodescope.records.json import JsonObject
from nodescope.remedy.engine import Engine, container_name, labels_of
from nodescope.remedy.guard.socket_use import SocketReading
from nodescope.remedy.guard.unit_surroundings import find_proc
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.docker import Docker
from nodescope.sources.network.unix_sockets import file_of
from nodescope.sources.processes.process_table import (
    ProcessSeen,
    ProcessTable,
    read_process_table,
)
from nodescope.sources.systemd.control_groups import find_prefix
from nodescope.wire.json_fields import text

_PODMAN_UNIT = "PODMAN_SYSTEMD_UNIT"
_MAX_COMMAND = 64 << 10
_LOOKS = 10  # a client is connected for a moment in each round
_BETWEEN_S = 0.2
_PROGRAMS = frozenset(("docker", "podman"))
_MAKES = frozenset(("run", "create"))
_ENDS_COMMAND = re.compile(r"[;&|()\n]+")
# Options of the program itself that take a value; a command of two words is `container run`.
_WITH_VALUE = frozenset(("-H", "--host", "-c", "--context", "--config", "-l", "--log-level",
                         "--url", "--connection", "--root", "--runroot"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContainerMaker:
    """What makes a container anew; without a target it is not known."""

    target: Target | None
    why: str


def find_maker(inspected: JsonObject, engine: Engine, node: NodeAccess) -> ContainerMaker | None:
    """Return what makes a container anew; None if it is not made anew.

    Of one that is not there at the moment, `inspected` has the name alone.
    """
    name = container_name(inspected)
    unit = text(labels_of(inspected), _PODMAN_UNIT)
    if unit is not None:
        return ContainerMaker(Target("unit", unit), f"{unit} makes it: stop that unit instead")
    times = _count_ids(name, engine, node)
    if times < 2:
        return None
    anew = f"{name} was made anew {times} times within half an hour"
    try:
        seen = _watch_clients(name, engine, find_proc(node))
        return choose_maker(anew, seen, lambda process: _owner_target(process, node))
    except SourceError as error:
        return ContainerMaker(None, f"{anew}, and it cannot be seen by whom ({error.reason})")


@dataclass(frozen=True, slots=True)
class ClientsSeen:
    """The clients of an engine within a few looks, each by the words for its owner."""

    makers: Mapping[str, ProcessSeen]  # with a command that makes the container
    others: Collection[str]


def choose_maker(
    anew: str, seen: ClientsSeen, target_of: Callable[[ProcessSeen], Target | None]
) -> ContainerMaker:
    """Return the one maker that was seen; none if there are several, or it cannot be stopped."""
    if len(seen.makers) > 1:
        named = " and ".join(sorted(seen.makers))
        return ContainerMaker(None, f"{anew}, and several make it: {named}; stop these yourself")
    for owner, process in seen.makers.items():
        target = target_of(process)
        if target is None:
            return ContainerMaker(None, f"{anew} by {owner}, which no step can stop: end it there")
        how = f"its process {process.comm} was seen at it"
        return ContainerMaker(target, f"{anew} by {owner} ({how}): stop that {target.kind} instead")
    clients = f"; clients of the engine: {', '.join(sorted(seen.others))}" if seen.others else ""
    return ContainerMaker(None, f"{anew}, and it is not known by whom: stop what makes it{clients}")


def _count_ids(name: str, engine: Engine, node: NodeAccess) -> int:
    """Return how many containers the name had, if that is a loop, from the engine's events."""
    watch = LoopWatch()
    now_ns = time.time_ns()
    docker = Docker(engine.path, node.places.proc)
    try:
        events = docker.read_recent(now_ns, now_ns - CONTAINER_WITHIN_NS)
    except SourceError:
        return 0  # podman keeps its events elsewhere
    finally:
        docker.close()
    for each in events:
        watch.take(each)
    loops = [each for each in watch.loops(now_ns) if each.name == name and not each.by_image]
    return loops[0].ids if loops and loops[0].new_ids else 0


def _watch_clients(name: str, engine: Engine, proc: Path) -> ClientsSeen:
    """Look at the clients of the engine's socket a few times."""
    file = file_of(engine.path)
    makers: dict[str, ProcessSeen] = {}
    others: set[str] = set()
    for number in range(_LOOKS):
        if number:
            time.sleep(_BETWEEN_S)
        table = read_process_table(proc)
        reading = SocketReading(proc, table, {os.getpid()}, {})
        for client in reading.holders_of_clients(file):
            owner = reading.describe(client)
            chain = list(_with_parents(client, table))
            if any(makes(_read_command(proc, each.pid), name) for each in chain):
                makers[owner] = client
            else:
                others.add(owner)
    return ClientsSeen(makers, others - makers.keys())


def _with_parents(process: ProcessSeen, table: ProcessTable) -> Iterator[ProcessSeen]:
    """Yield a process and its parents, as far as they are of one owner."""
    passed: set[int] = set()
    each: ProcessSeen | None = process
    while each is not None and each.pid not in passed and each.owner == process.owner:
        passed.add(each.pid)
        yield each
        each = table.processes.get(each.parent)


def makes(command: Sequence[str], name: str) -> bool:
    """Decide whether a command runs or creates a container of this name by its engine's client.

    The text of a shell is one argument with several commands in it.
    """
    if _makes(command, name):
        return True
    texts = (part for word in command if " " in word for part in _ENDS_COMMAND.split(word))
    return any(_makes([word.strip("'\"") for word in each.split()], name) for each in texts)


def _makes(words: Sequence[str], name: str) -> bool:
    for at, word in enumerate(words):
        if os.path.basename(word) in _PROGRAMS:
            rest = _after_options(words[at + 1 :])
            if rest[:1] == ["container"]:
                rest = rest[1:]
            pairs = zip(rest, [*rest[1:], ""], strict=True)
            named = f"--name={name}" in rest or ("--name", name) in pairs
            if rest and rest[0] in _MAKES and named:
                return True
    return False


def _after_options(words: Sequence[str]) -> list[str]:
    """Return the words from the first that is neither an option nor the value of one."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    return list(words[at:])


def _owner_target(process: ProcessSeen, node: NodeAccess) -> Target | None:
    """Return the container or service of a process; None if this node's systemd has it not."""
    owner = process.owner
    if owner is None:
        return None
    if owner.container_id:
        return Target("container", owner.container_id, runtime=owner.runtime or "docker")
    name = owner.unit or ""
    unit = node.manager.read_units([name]).get(name) if name.endswith(".service") else None
    prefix = find_prefix(node.places, node.manager.bus.peer_pid, ())
    # Another systemd, inside this one or around it, may have a unit of the same name.
    if unit is None or not unit.control_group or prefix is None:
        return None
    return Target("unit", name) if process.is_below(prefix + unit.control_group) else None


def _read_command(proc: Path, pid: int) -> list[str]:
    try:
        with open(proc / str(pid) / "cmdline", "rb") as file:
            content = file.read(_MAX_COMMAND)
    except OSError:
        return []  # it ended
    return content.decode("utf-8", "replace").rstrip("\0").split("\0")

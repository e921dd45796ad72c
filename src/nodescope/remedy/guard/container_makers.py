"""Who makes a container anew, again and again, under one name.

Such a container has a new id each time, and stopping it changes nothing. Its maker is known
where it left a name: a label of podman's units, a command line that names the container, or
being the only client of the engine. Otherwise it is not guessed.
"""

from __future__ import annotations

import os
import time
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
from nodescope.sources.processes.process_table import (
    ProcessSeen,
    ProcessTable,
    read_process_table,
)
from nodescope.wire.json_fields import text

_PODMAN_UNIT = "PODMAN_SYSTEMD_UNIT"
_MAX_COMMAND = 64 << 10


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
    proc = find_proc(node)
    try:
        table = read_process_table(proc)
        found = _by_command(name, table, proc) or _by_connection(engine, table, proc)
    except SourceError:
        found = None
    if found is None:
        return ContainerMaker(None, f"{anew}, and it is not known by whom: stop what makes it")
    target, how = found
    return ContainerMaker(
        target, f"{anew} by {target.name} ({how}): stop that {target.kind} instead"
    )


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


def _by_command(name: str, table: ProcessTable, proc: Path) -> tuple[Target, str] | None:
    """Find the one unit or container in which a command names the container."""
    found = {}
    for each in table.processes.values():
        if each.pid != os.getpid() and name in _read_words(proc, each.pid):
            target = _owner_target(each)
            # A container's own processes may well know its name.
            if target is not None and target.name != name:
                found[target] = f"its command {each.comm} names the container"
    return next(iter(found.items())) if len(found) == 1 else None


def _by_connection(engine: Engine, table: ProcessTable, proc: Path) -> tuple[Target, str] | None:
    """Find the one unit or container that is connected to the engine's socket."""
    reading = SocketReading(proc, table, {os.getpid()}, {})
    holders = reading.holders_of_clients(f"/{engine.path.name}")
    found = {target for each in holders if (target := _owner_target(each)) is not None}
    if len(found) != 1:
        return None
    return found.pop(), "the only client of the engine"


def _owner_target(process: ProcessSeen) -> Target | None:
    owner = process.owner
    if owner is None:
        return None
    if owner.container_id:
        return Target("container", owner.container_id, runtime=owner.runtime or "docker")
    return Target("unit", owner.unit) if (owner.unit or "").endswith(".service") else None


def _read_words(proc: Path, pid: int) -> set[str]:
    try:
        with open(proc / str(pid) / "cmdline", "rb") as file:
            words = file.read(_MAX_COMMAND).decode("utf-8", "replace").split("\0")
    except OSError:
        return set()  # it ended
    # A shell's command is one argument with many words; `--name=x` is one as well.
    return {part for word in words for part in word.replace("=", " ").split()}

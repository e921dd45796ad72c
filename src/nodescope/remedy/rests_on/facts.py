"""The facts that a plan rests on: read when it is made, and again before its first step.

Each kind of fact has one reader (`READERS`), which returns a text, or `absent`. A step rests
on the facts of its kind (`_subjects`): those that decide whether it still means what it meant
when a person read it. A unit that loops has a new invocation and a new cgroup at every round,
a looping container a new start: of these the plan rests on that they still loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError
from nodescope.judgement.unit_loops import loops_now
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Fact, PlanStep
from nodescope.remedy.rests_on.container_facts import (
    read_container_id,
    read_container_image,
    read_container_limit,
    read_container_policy,
    read_container_state,
)
from nodescope.remedy.rests_on.unit_file_facts import list_unit_files, read_file_digest
from nodescope.remedy.steps.kernel_values import read_value
from nodescope.sources.cgroups.paths_by_id import find_default_hierarchy
from nodescope.sources.kernel_files import read_text
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.systemd.control_groups import find_prefix
from nodescope.sources.systemd.unit import Unit

ABSENT = "absent"
LOOPS = "loops"
_HOST = "node"  # the subject of facts about the whole node

Reader = Callable[[str, NodeAccess], str]


def read_facts(steps: Iterable[PlanStep], node: NodeAccess) -> tuple[Fact, ...]:
    """Read the facts that steps rest on, each once, those of the node first.

    What is absent is a fact. What cannot be read is none: then there can be no plan, and
    `SourceError` is raised.
    """
    steps = tuple(steps)
    wanted = dict.fromkeys([("boot", _HOST), ("host", _HOST), ("machine", _HOST)])
    if any(step.target.kind == "unit" for step in steps):
        wanted["systemd_start", _HOST] = None
    for step in steps:
        wanted |= dict.fromkeys(_subjects(step, node))
    return tuple(Fact(kind, subject, _read(kind, subject, node)) for kind, subject in wanted)


def changed_facts(facts: Iterable[Fact], node: NodeAccess) -> tuple[str, ...]:
    """Return what is no longer as it was, a sentence each, the old value before the new one."""
    changed = []
    for fact in facts:
        try:
            now = _read(fact.kind, fact.subject, node)
        except SourceError as error:
            now = f"not readable ({error.reason})"
        if now != fact.value:
            words = _WORDS.get(fact.kind, fact.kind)
            changed.append(f"{words.format(fact.subject)} was {fact.value}, and is {now}")
    return tuple(changed)


def _read(kind: str, subject: str, node: NodeAccess) -> str:
    reader = READERS.get(kind)
    if reader is None:
        return "of a kind that this version does not know"
    try:
        return reader(subject, node)
    except SourceAbsent as error:
        return f"{ABSENT} ({error.reason})"


# -- which facts a step rests on ---------------------------------------------------

_UNIT = ("unit_run", "unit_active", "unit_file_state", "unit_files", "unit_cgroup")
_CONTAINER = ("container_id", "container_image", "container_state", "container_policy")


def _subjects(step: PlanStep, node: NodeAccess) -> Iterator[tuple[str, str]]:
    """Yield the kind and subject of each fact that a step rests on."""
    name = step.target.name or ""
    if step.target.kind == "unit":
        yield from ((kind, name) for kind in _UNIT)
        yield from (("file", path) for path in list_unit_files(name, node))
        if step.kind == "set_unit_property":
            yield "unit_limit", f"{name} {step.arguments.get('property', '')}"
    elif step.target.kind == "container":
        subject = f"{step.target.runtime or 'docker'} {name}"
        yield from ((kind, subject) for kind in _CONTAINER)
        if step.kind == "set_container_limit":
            yield "container_limit", f"{subject} {step.arguments.get('limit', '')}"
    elif step.kind == "set_kernel_value":
        yield "kernel_value", name
    elif step.kind == "move_interrupt":
        yield "irq_affinity", step.arguments.get("irq", "")
    elif step.kind == "reclaim_cgroup" or (step.kind, step.target.kind) == ("thaw", "cgroup"):
        yield "cgroup", name


# -- readers -----------------------------------------------------------------------


def read_boot(node: NodeAccess) -> str:
    """Return the id of the running boot; of a systemd in a namespace, the machine's."""
    path = node.places.proc / "sys/kernel/random/boot_id"
    boot = read_text(path)
    if boot is None:
        raise SourceError(path, "no id of the boot: a plan could not be bound to it")
    return boot


def read_host(node: NodeAccess) -> str:
    """Return the node's name, as its own kernel namespace has it."""
    if node.places.root == Path("/") and node.unit_root != Path("/"):
        # Another system's processes are seen in ours: its name is in its own files alone.
        return _first_line(node.unit_root / "etc/hostname")
    return _first_line(node.places.proc / "sys/kernel/hostname")


def _machine(_: str, node: NodeAccess) -> str:
    return _first_line(node.unit_root / "etc/machine-id")


def _systemd_start(_: str, node: NodeAccess) -> str:
    """Return when that systemd started, on the monotonic clock; a reload does not change it."""
    return f"{node.manager.read_manager_property('UserspaceTimestampMonotonic')} µs"


def _first_line(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").partition("\n")[0].strip() or ABSENT
    except OSError:
        return ABSENT


def _unit_run(name: str, node: NodeAccess) -> str:
    """Return which run of a unit it is: its invocation, or that it loops."""
    unit = _get_unit(name, node)
    if unit is None:
        return ABSENT
    if _loops(unit):
        return LOOPS
    return f"invocation {unit.invocation}" if unit.invocation else "never started"


def _unit_active(name: str, node: NodeAccess) -> str:
    unit = _get_unit(name, node)
    if unit is None:
        return ABSENT
    return LOOPS if _loops(unit) else unit.active or ABSENT


def _unit_file_state(name: str, node: NodeAccess) -> str:
    unit = _get_unit(name, node)
    return ABSENT if unit is None else unit.file_state or "no unit file"


def _unit_files(name: str, node: NodeAccess) -> str:
    """Return the names of its files, drop-ins and links; their contents are facts of their own."""
    return " ".join(list_unit_files(name, node)) or ABSENT


def _unit_cgroup(name: str, node: NodeAccess) -> str:
    """Return its control group, and which one of that name; of a loop the name alone."""
    unit = _get_unit(name, node)
    if unit is None or not unit.control_group:
        return ABSENT
    if _loops(unit):
        return unit.control_group
    prefix = find_prefix(node.places, node.manager.bus.peer_pid, ())
    tree = find_default_hierarchy()
    if prefix is None or tree is None:
        return unit.control_group
    inode = _inode(Path(f"{tree}{prefix}{unit.control_group}"))
    return unit.control_group if inode is None else f"{unit.control_group} (inode {inode})"


def _unit_limit(subject: str, node: NodeAccess) -> str:
    name, _, wanted = subject.partition(" ")
    kind = name.rpartition(".")[2].capitalize()
    wanted = {"CPUQuota": "CPUQuotaPerSecUSec"}.get(wanted, wanted)
    value = node.manager.read_property(name, kind, wanted)
    return "infinity" if value == (1 << 64) - 1 else str(value)


def _irq_affinity(irq: str, node: NodeAccess) -> str:
    if not irq.isdecimal():
        return ABSENT
    return _first_line(node.places.proc / "irq" / irq / "smp_affinity_list")


def _cgroup(path: str, node: NodeAccess) -> str:
    """Return the identity of a cgroup: one that was removed and made again has another."""
    inode = _inode(Path(find_memory_hierarchy(node.places).directory(path)))
    return ABSENT if inode is None else f"inode {inode}"


def _get_unit(name: str, node: NodeAccess) -> Unit | None:
    return node.manager.read_units([name]).get(name)


def _loops(unit: Unit) -> bool:
    return loops_now(unit, time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


READERS: Mapping[str, Reader] = {
    "boot": lambda _, node: read_boot(node),
    "host": lambda _, node: read_host(node),
    "machine": _machine,
    "systemd_start": _systemd_start,
    "unit_run": _unit_run,
    "unit_active": _unit_active,
    "unit_file_state": _unit_file_state,
    "unit_files": _unit_files,
    "unit_cgroup": _unit_cgroup,
    "unit_limit": _unit_limit,
    "file": read_file_digest,
    "container_id": read_container_id,
    "container_image": read_container_image,
    "container_state": read_container_state,
    "container_policy": read_container_policy,
    "container_limit": read_container_limit,
    "kernel_value": read_value,
    "irq_affinity": _irq_affinity,
    "cgroup": _cgroup,
}
_WORDS = {
    "boot": "the boot of the node",
    "host": "the name of the node",
    "machine": "the id of the machine",
    "systemd_start": "the start of systemd",
    "unit_run": "the run of {}",
    "unit_active": "the state of {}",
    "unit_file_state": "the unit file of {}",
    "unit_files": "the list of unit files of {}",
    "unit_cgroup": "the control group of {}",
    "unit_limit": "{}",
    "file": "the content of {}",
    "container_id": "the id of container {}",
    "container_image": "the image of container {}",
    "container_state": "the state of container {}",
    "container_policy": "the restart policy of container {}",
    "container_limit": "the limit of container {}",
    "kernel_value": "{}",
    "irq_affinity": "the cores of interrupt {}",
    "cgroup": "the cgroup {}",
}

"""What to do about the root of a chain first, by its name: a proposal, nothing of it is run.

Stopping is proposed only where a link says that the root makes the trouble: it loops, and
leaves behind what is walked. Whoever was merely on the core is to be looked at.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root, Step
from nodescope.records.node import ContainerRow, UnitRow

_PEOPLE = ("unit", "container", "pod", "process")  # who can be looked at, unlike a state
_RUNTIMES = ("docker", "podman")  # with a command of that name which stops a container by name


def propose(case: Case, links: Sequence[Link], root: Root, at_ns: int) -> tuple[Step, ...]:
    """The first steps: to look at the root, and to stop it where it makes the trouble."""
    if root.kind not in _PEOPLE:
        return ()
    if not is_blamed(links):
        said = f"look at {root.title} first: nothing shows that it is broken"
        return (Step(said, links[-1].show),)
    look = Step(f"look first: what is {root.name} for, and who needs it?", links[-1].show)
    stop = _stop_unit if root.kind == "unit" else _stop_container
    return look, stop(case, root.name, at_ns)


def is_blamed(links: Sequence[Link]) -> bool:
    """Whether a chain says that its root makes the trouble."""
    return any(link.kind == "source" for link in links)


def _stop_unit(case: Case, name: str, at_ns: int) -> Step:
    unit = next((row for row in case.state(UnitRow, at_ns) if row.unit == name), None)
    state = unit.file_state if unit is not None else None
    if state in (None, "", "enabled"):
        how = f"now and at every boot (undone by `systemctl enable --now {_word(name)}`)"
    else:
        how = f"until something starts it again: its unit file is {state}"
    elsewhere = _above_slices(unit.cgroup or "") if unit is not None else ""
    command = f"systemctl disable --now {_word(name)}"
    if not elsewhere:
        return Step(f"stop {name}, {how}", command)
    # No command to copy: on the node it would be about another unit of that name.
    return Step(f"stop {name} by `{command}` where its own systemd runs, below {elsewhere}: {how}")


def _above_slices(cgroup: str) -> str:
    """Where in the tree the slices of a systemd begin; nowhere for the node's own."""
    parts = cgroup.split("/")
    first = next((at for at, part in enumerate(parts) if part.endswith(".slice")), 1)
    return "/".join(parts[:first])


def _stop_container(case: Case, name: str, at_ns: int) -> Step:
    rows = [row for row in case.state(ContainerRow, at_ns)
            if row.name == name]  # fmt: skip
    row = max(rows, key=lambda row: row.time_ns, default=None)
    if row is not None and row.pod:
        pod = f"{row.namespace or 'default'}/{row.pod}"
        return Step(f"stop container {name} by what runs pod {pod}: a pod alone is made again")
    if row is not None and row.runtime in _RUNTIMES:
        said = f"stop container {name}, and whatever makes it again"
        return Step(said, f"{row.runtime} stop {_word(name)}")
    by = f" of {row.runtime}" if row is not None else ""
    return Step(f"stop container {name}{by}, and whatever makes it again")


def _word(name: str) -> str:
    """A name as one word of a shell that no program takes for an option."""
    quoted = shlex.quote(name)
    return f"-- {quoted}" if name.startswith("-") else quoted

"""An action in words and as a command to copy: the one place where either is written.

A command is given only where it would do what the sentence says, on the node itself.
Names are quoted for a shell, and none is taken for an option.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from nodescope.records.action import Action, Target
from nodescope.records.view_forms import render_command

_RUNTIMES = ("docker", "podman")  # with a command of that name which stops a container by name


@dataclass(frozen=True, slots=True)
class Step:
    """An action as a report shows it. It is not run."""

    statement: str
    command: str | None = None


def describe_step(action: Action, archive: Path | None = None) -> Step:
    """Return an action in words, and as a command where there is one."""
    return Step(describe_action(action), action_command(action, archive))


def describe_action(action: Action) -> str:
    """Return what is to be done, in one sentence."""
    if action.kind == "look":
        return _describe_look(action)
    if action.kind == "stop_unit":
        return _describe_stop_unit(_named(action))
    if action.kind == "stop_container":
        return _describe_stop_container(_named(action))
    if action.kind == "change_program" and action.target is None:
        said = action.value or ""
    elif action.kind == "raise_limit" and action.target and action.target.kind in _LIMITED:
        named = {"tasks": "task limit", "memory": "memory limit"}
        limit = named.get(action.value or "memory", f"limit of {action.value}")
        said = f"raise the {limit} of {_called(action.target)}"
    else:
        said = _SENTENCES[action.kind].format(
            target=_called(action.target), value=action.value or ""
        )
    said = f"{said}, {action.note}" if action.note else said
    back = " (undone by writing back what it is now)" if action.kind == "set_kernel_value" else ""
    return f"{said}{back}"


# `value` is what ACTION_KINDS says it is.
_SENTENCES = {
    "stop_leak": "stop what {value}",
    "free_zombies": "free the zombie memory cgroups that are left, as this says for the node's "
    "kernel",
    "raise_limit": "raise {target}",
    "add_memory": "give {target} more memory, or less work",
    "set_kernel_value": "set {target} to {value}",
    "set_boot_option": "boot with {value}",
    "upgrade_kernel": "run Linux {value} or later",
    "spread_queues": "spread the queues of {target} over more cores (RSS, RPS)",
    "change_program": "let {target} {value}",
    "change_firewall": "{value}",
    "drain_node": "drain {target}",
    "reboot_node": "boot {target} anew",
    "reset_device": "reset {target}",
    "replace_hardware": "replace {target}",
    "restart_job": "start {target} again",
    "abort_connection": "abort the FUSE connection of {target}",
    "thaw": "thaw {target}",
    "free_space": "make room on {target}",
    "cap_unit": "give {target} at most {value} % of one core",
}
_LIMITED = ("cgroup", "unit", "container", "pod")


def action_command(action: Action, archive: Path | None = None) -> str | None:
    """Return the command that does it, or that shows what it is about; None if there is none."""
    if action.kind == "stop_unit":
        target = _named(action)
        # On the node it would be about another unit of that name.
        return None if target.within else _disable(target)
    if action.kind == "stop_container":
        target = _named(action)
        if target.within or target.runtime not in _RUNTIMES:
            return None
        return f"{target.runtime} stop {_word(target.name or '')}"
    if action.kind == "set_kernel_value":
        return _write_value(_named(action).name or "", action.value or "")
    if action.view is not None:
        return render_command(action.view, archive)
    return action.value if action.kind == "look" else None


def _named(action: Action) -> Target:
    if action.target is None or action.target.name is None:
        raise ValueError(f"{action.kind} without a name")
    return action.target


# -- looking -----------------------------------------------------------------------


def _describe_look(action: Action) -> str:
    if action.target is None or action.target.name is None:
        return action.note
    return f"look at {action.target.kind} {action.target.name} first: {action.note}"


# -- stopping ----------------------------------------------------------------------


def _describe_stop_unit(unit: Target) -> str:
    name = unit.name or ""
    if unit.file_state in (None, "", "enabled"):
        how = f"now and at every boot (undone by `systemctl enable --now {_word(name)}`)"
    else:
        how = f"until something starts it again: its unit file is {unit.file_state}"
    if not unit.within:
        return f"stop {name}, {how}"
    where = f"where its own systemd runs, below {unit.within}"
    return f"stop {name} by `{_disable(unit)}` {where}: {how}"


def _describe_stop_container(container: Target) -> str:
    name = container.name or ""
    if container.within:
        return (
            f"stop container {name} by what runs pod {container.within}: a pod alone is made again"
        )
    by = f" of {container.runtime}" if container.runtime else ""
    return f"stop container {name}{by}, and whatever makes it again"


def _disable(unit: Target) -> str:
    return f"systemctl disable --now {_word(unit.name or '')}"


# -- names -------------------------------------------------------------------------


def _called(target: Target | None) -> str:
    """Return a target's name, or what stands for it where none is known."""
    if target is None:
        return ""
    return _NAMELESS[target.kind] if target.name is None else target.name


_NAMELESS = {
    "unit": "the unit",
    "container": "the container",
    "pod": "the pod",
    "process": "the program",
    "cgroup": "the cgroup that reclaims",
    "kernel_value": "the value",
    "network_device": "the device",
    "node": "the node",
    "device": "the device",
    "module": "the module",
    "mount": "the file system",
    "job": "the job",
}


def _write_value(name: str, value: str) -> str:
    if name.startswith("/"):
        return f"echo {shlex.quote(value)} > {shlex.quote(name)}"
    return f"sysctl -w {shlex.quote(f'{name}={value}')}"


def _word(name: str) -> str:
    """Return a name as one word of a shell that no program takes for an option."""
    quoted = shlex.quote(name)
    return f"-- {quoted}" if name.startswith("-") else quoted

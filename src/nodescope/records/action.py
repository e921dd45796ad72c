"""An action: one step of a remedy as data. Nothing here runs anything.

Mechanisms propose actions (`fix` and `stop` in their files), and so does a diagnosis about
the root of a chain. `action_words` renders them as sentences and commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from nodescope.records.view import View
from nodescope.records.view_forms import Document, parse_view, view_document

ActionName = Literal[
    "look", "stop_unit", "stop_container", "stop_leak", "free_zombies", "raise_limit",
    "add_memory", "set_kernel_value", "set_boot_option", "upgrade_kernel", "spread_queues",
    "change_program", "change_firewall", "drain_node", "reboot_node", "reset_device",
    "replace_hardware", "restart_job", "abort_connection", "thaw", "free_space", "cap_unit",
]  # fmt: skip
TargetName = Literal[
    "unit", "container", "pod", "process", "cgroup", "kernel_value", "network_device", "node",
    "device", "module", "mount", "job",
]  # fmt: skip
Undo = Literal["nothing to undo", "start again", "write back", "by hand", "never"]


@dataclass(frozen=True, slots=True)
class Target:
    """The subject of an action; without a name it is not known by name."""

    kind: TargetName
    name: str | None = None
    within: str | None = None  # the cgroup below which a unit's own systemd runs; a container's pod
    runtime: str | None = None  # of a container
    file_state: str | None = None  # of a unit: enabled, static, …


@dataclass(frozen=True, slots=True)
class ActionKind:
    """The declaration of one kind of action."""

    help: str
    targets: frozenset[TargetName]  # empty: none
    undo: Undo
    value: str = ""  # what the value means; empty: there is none


def _kind(help_: str, targets: str, undo: Undo, value: str = "") -> ActionKind:
    known: dict[str, TargetName] = {name: name for name in get_args(TargetName)}
    return ActionKind(help_, frozenset(known[name] for name in targets.split()), undo, value)


ACTION_KINDS: dict[ActionName, ActionKind] = {
    "look": _kind("look before anything is changed",
                  "unit container pod process cgroup node device module mount job",
                  "nothing to undo", "another tool's command"),
    "stop_unit": _kind("stop a unit, now and at boot", "unit", "start again"),
    "stop_container": _kind("stop a container", "container", "start again"),
    "stop_leak": _kind("stop what makes it, of which no name is known", "node", "by hand",
                       "what it does"),
    "free_zombies": _kind("free the removed memory cgroups that are left", "node", "never"),
    "raise_limit": _kind("raise a limit", "cgroup unit container pod kernel_value",
                         "write back", "what it limits: `memory` or `tasks`"),
    "add_memory": _kind("give more memory, or less work", "node process", "by hand"),
    "set_kernel_value": _kind("write a value of the kernel", "kernel_value", "write back",
                              "the value"),
    "set_boot_option": _kind("boot with an option of the kernel", "node", "by hand",
                             "the option"),
    "upgrade_kernel": _kind("run a later kernel", "node", "by hand", "the first version"),
    "spread_queues": _kind("serve a device's queues by more cores", "network_device",
                           "write back"),
    "change_program": _kind("let a program do something else", "process", "by hand",
                            "what it should do"),
    "change_firewall": _kind("change firewall rules", "node", "by hand", "what to change"),
    "drain_node": _kind("let no new work come to the node, and its work go elsewhere", "node",
                        "by hand"),
    "reboot_node": _kind("boot the node anew", "node", "never"),
    "reset_device": _kind("reset a device", "device", "never"),
    "replace_hardware": _kind("replace a device, or the node", "device node", "never"),
    "restart_job": _kind("start a job again", "job", "by hand"),
    "abort_connection": _kind("end all requests to a file system in user space", "mount",
                              "never"),
    "thaw": _kind("let a frozen file system or cgroup go on", "mount cgroup", "by hand"),
    "free_space": _kind("make room on a file system", "mount", "never"),
    "cap_unit": _kind("limit the CPU time of a unit", "unit", "write back",
                      "percent of one core"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a remedy."""

    kind: ActionName
    target: Target | None = None
    value: str | None = None  # `ACTION_KINDS` says what it means
    note: str = ""  # why, or what for
    view: View | None = None  # that shows what it is about

    def __post_init__(self) -> None:
        kind = ACTION_KINDS[self.kind]
        if self.target is not None and self.target.kind not in kind.targets:
            raise ValueError(f"{self.kind} is not for a {self.target.kind}")
        if self.value is not None and not kind.value:
            raise ValueError(f"{self.kind} takes no value")

    @property
    def undo(self) -> Undo:
        """How it is undone."""
        return ACTION_KINDS[self.kind].undo


def with_names(action: Action, names: Mapping[TargetName, str]) -> Action:
    """Return the action on what is known by name by now, where its own target has none."""
    target = action.target
    if target is None or target.name is not None or target.kind not in names:
        return action
    return replace(action, target=replace(target, name=names[target.kind]))


# -- JSON and TOML -----------------------------------------------------------------


def action_document(action: Action) -> Document:
    """Return it as JSON; what is not given is left out."""
    document: Document = {"kind": action.kind, "undo": action.undo}
    if action.target is not None:
        facts = {name: getattr(action.target, name) for name in _TARGET}
        document["target"] = {name: fact for name, fact in facts.items() if fact is not None}
    if action.value is not None:
        document["value"] = action.value
    if action.note:
        document["note"] = action.note
    if action.view is not None:
        document["view"] = view_document(action.view)
    return document


_TARGET = ("kind", "name", "within", "runtime", "file_state")


def parse_action(document: Mapping[str, object]) -> Action:
    """Return the action that is written so; `ValueError` says what is wrong with it."""
    if unknown := sorted(document.keys() - {"kind", "undo", "target", "value", "note", "view"}):
        raise ValueError(f"an action has no {unknown[0]!r}")
    kind = document.get("kind")
    if kind not in ACTION_KINDS:
        raise ValueError(f"no action {kind!r}: there are {', '.join(ACTION_KINDS)}")
    view = document.get("view")
    if view is not None and not isinstance(view, Mapping):
        raise ValueError(f"view is not a table: {view!r}")
    return Action(
        kind,
        _parse_target(document.get("target")),
        None if document.get("value") is None else str(document["value"]),
        str(document.get("note", "")),
        None if view is None else parse_view(view),
    )


def _parse_target(written: object) -> Target | None:
    """Return the target: a kind alone, or a table with its name and facts."""
    if written is None:
        return None
    facts = {"kind": written} if isinstance(written, str) else written
    if not isinstance(facts, Mapping):
        raise ValueError(f"target is not a kind or a table: {written!r}")
    for kind in get_args(TargetName):
        if facts.get("kind") == kind:
            rest = {name: str(facts[name]) for name in _TARGET[1:] if name in facts}
            return Target(kind, **rest)
    raise ValueError(f"no target {written!r}: there are {', '.join(get_args(TargetName))}")

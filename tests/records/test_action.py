"""Actions as data: what each kind takes, and that they read back."""

from __future__ import annotations

import json
import shlex

import pytest

from nodescope.records.action import (
    ACTION_KINDS,
    Action,
    Target,
    action_document,
    parse_action,
    with_names,
)
from nodescope.records.action_words import action_command, describe_action, describe_step
from nodescope.records.view import View

ACTIONS = [
    Action("look", Target("unit", "x.service"), note="who needs it?", view=View("doctor")),
    Action("look", value="bpftool prog show", note="list them"),
    Action("stop_unit", Target("unit", "x.service", file_state="enabled")),
    Action("stop_container", Target("container", "x", "shop/web-1", "containerd")),
    Action("stop_leak", value="leaks memory cgroups"),
    Action("free_zombies", Target("node"), view=View("zombies")),
    Action("raise_limit", Target("cgroup", "/a.slice"), note="to gain time"),
    Action("add_memory", Target("node")),
    Action("set_kernel_value", Target("kernel_value", "kernel.numa_balancing"), "0"),
    Action("set_boot_option", value="hugepages=N"),
    Action("upgrade_kernel", value="5.8"),
    Action("spread_queues", Target("network_device", "eth0")),
    Action("change_program", Target("process"), "watch fewer files"),
    Action("change_firewall", value="use sets"),
    Action("raise_limit", Target("unit", "x.service"), "tasks"),
    Action("look", Target("device", "sda"), note="what else was reported of it?"),
    Action("drain_node", Target("node")),
    Action("reboot_node", Target("node")),
    Action("reset_device", Target("device", "0000:3b:00.0")),
    Action("replace_hardware", Target("device", "sda")),
    Action("restart_job", Target("job")),
    Action("abort_connection", Target("mount", "/mnt/data")),
    Action("thaw", Target("mount")),
    Action("free_space", Target("mount", "/var")),
    Action("cap_unit", Target("unit", "scan.service"), "50"),
]


def test_every_kind_is_tried() -> None:
    assert {action.kind for action in ACTIONS} == ACTION_KINDS.keys()


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.kind)
def test_json_reads_back_as_the_same_action(action: Action) -> None:
    assert parse_action(json.loads(json.dumps(action_document(action)))) == action


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.kind)
def test_every_kind_has_a_sentence_and_says_how_it_is_undone(action: Action) -> None:
    said = describe_action(action)
    assert len(said.split()) > 1
    assert not set("{}") & set(said)
    assert "None" not in said
    assert action_document(action)["undo"] == ACTION_KINDS[action.kind].undo


def test_a_kernel_value_is_written_and_written_back() -> None:
    name = "/sys/kernel/mm/transparent_hugepage/enabled"
    step = describe_step(Action("set_kernel_value", Target("kernel_value", name), "madvise"))
    assert step.command == f"echo madvise > {name}"
    assert step.statement.endswith("to madvise (undone by writing back what it is now)")
    numa = Action("set_kernel_value", Target("kernel_value", "kernel.numa_balancing"), "0; id")
    assert shlex.split(action_command(numa) or "") == [
        "sysctl", "-w", "kernel.numa_balancing=0; id",
    ]  # fmt: skip


def test_only_a_target_without_a_name_takes_one() -> None:
    program = Action("change_program", Target("process"), "watch fewer files")
    assert describe_action(program) == "let the program watch fewer files"
    java = with_names(program, {"process": "java"})
    assert describe_action(java) == "let java watch fewer files"
    assert with_names(java, {"process": "python"}) == java
    assert with_names(program, {"cgroup": "/a"}) == program


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"kind": "pray"}, "no action 'pray'"),
        ({"kind": "stop_unit", "target": "cgroup"}, "stop_unit is not for a cgroup"),
        ({"kind": "stop_unit", "target": "ghost"}, "no target 'ghost'"),
        ({"kind": "stop_unit", "target": 7}, "not a kind or a table"),
        ({"kind": "stop_unit", "value": "7"}, "stop_unit takes no value"),
        ({"kind": "look", "view": "top"}, "view is not a table"),
        ({"kind": "look", "who": "me"}, "an action has no 'who'"),
    ],
)
def test_a_wrong_document_is_refused(document: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_action(document)

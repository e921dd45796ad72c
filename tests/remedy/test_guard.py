"""The guard's decision on plain facts, and on those that a real kubelet's node showed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.remedy.guard_table import CONTAINERS, KUBELET, UNITS, Row

from nodescope.records.action import Target
from nodescope.records.json import JsonObject
from nodescope.remedy.guard.container_surroundings import (
    find_declared,
    find_dependants,
    find_pod_owner,
    read_container_surroundings,
)
from nodescope.remedy.guard.decision import decide, guard
from nodescope.remedy.guard.surroundings import Client, Surroundings
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Refused
from nodescope.sources.places import Places

_RECORDED = Path(__file__).with_name("kubelet_surroundings.json")
_PAGE = Path(__file__).parents[2] / "docs/fix-guard.md"
_LOOPS = Surroundings(name="agent.service", kind="unit", state="activating", loops=True)
_WELL = replace(_LOOPS, state="active", loops=False)


def _recorded() -> dict[str, Surroundings]:
    document: dict[str, Any] = json.loads(_RECORDED.read_text())
    found = {}
    for each in document["units"]:
        clients = tuple(Client(**client) for client in each.pop("clients"))
        facts: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in each.items()
        }
        found[each["name"]] = Surroundings(**facts, clients=clients)
    for each in document["containers"]:
        target = Target(**each)
        found[each["name"]] = read_container_surroundings(target, NodeAccess(Places()))
    return found


@pytest.mark.parametrize("row", KUBELET, ids=lambda row: row.name)
def test_a_real_kubelets_node_is_judged_as_the_table_has_it(row: Row) -> None:
    facts = _recorded()[row.name]
    reasons, override = decide(facts)
    row.check(Refused(Target("unit", row.name), "; ".join(reasons), override) if reasons else None)


def test_the_page_shows_the_table() -> None:
    text = _PAGE.read_text()
    missing = [
        row.name
        for row in (*UNITS, *CONTAINERS, *KUBELET)
        if f"| `{row.name}` | {row.what} | {row.verdict} |" not in text
    ]
    assert missing == []


def test_one_that_loops_and_serves_nobody_is_allowed_whatever_its_name_promises() -> None:
    for name in ("ecs.service", "amazon-ssm-agent.service", "google-guest-agent.service"):
        assert decide(replace(_LOOPS, name=name)) == ((), name)


def test_an_agent_in_use_is_not() -> None:
    reasons, override = decide(replace(_WELL, reaches=("52.94.1.9:443",)))
    assert "connected to 52.94.1.9:443" in reasons[0]
    assert override == "agent.service"
    # The connection of a run that is about to fail serves nobody.
    assert decide(replace(_LOOPS, reaches=("52.94.1.9:443",)))[0] == ()


def test_what_could_not_be_seen_is_demanded_to_be_known() -> None:
    reasons, override = decide(replace(_LOOPS, unseen=("the sockets of 2 of its processes",)))
    assert reasons == ("not seen: the sockets of 2 of its processes",)
    assert override == "agent.service"


def test_a_loop_with_a_client_is_in_use() -> None:
    reasons, _ = decide(replace(_LOOPS, clients=(Client("tcp:22", "10.0.0.7", 2),)))
    assert reasons == ("in use: 10.0.0.7 is connected to tcp:22 (2 connections)",)


def test_names_on_the_bus_are_used_by_whoever_watches_them() -> None:
    owned = replace(_LOOPS, bus_names=("org.example.Agent",))
    assert decide(owned)[0] == ()
    watched = replace(owned, watchers=("panel.service",))
    assert decide(watched)[0] == ("panel.service asked the bus for its signals",)
    (reason,), _ = decide(replace(owned, loops=False, state="active"))
    assert "org.example.Agent on the bus" in reason


def test_evidence_goes_before_names() -> None:
    sshd = replace(_WELL, name="sshd.service", clients=(Client("tcp:22", "10.0.0.7"),))
    (reason,), _ = decide(sshd)
    assert "by its name" not in reason
    (reason,), _ = decide(replace(_LOOPS, name="sshd.service"))
    assert reason == "by its name, it is the way into this node"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("systemd-udevd.service", "a part of systemd"),
        ("chronyd.service", "the synchronisation of the clock"),
        ("NetworkManager.service", "the node's network"),
        ("multipathd.service", "storage"),
        ("crio.service", "a container runtime"),
    ],
)
def test_the_last_resort_knows_names(name: str, words: str) -> None:
    reasons, override = decide(replace(_LOOPS, name=name))
    assert words in reasons[0]
    assert override == name


@pytest.mark.parametrize(
    "name", ["user.slice", "local-fs.target", "var.mount", "dev-sda2.swap", "sys-a.device"]
)
def test_groups_devices_and_file_systems_are_never_ended(name: str) -> None:
    reasons, override = decide(replace(_WELL, name=name))
    assert reasons
    assert override == ""


def test_a_step_without_a_name_ends_nothing() -> None:
    step = PlanStep("stop_unit", Target("unit"), "", {}, (), (), "")
    refused = guard(step, NodeAccess(Places()))
    assert refused is not None
    assert "nothing is ended without a name" in refused.reason


def test_a_node_without_a_bus_is_refused_and_says_so(tmp_path: Path) -> None:
    step = PlanStep("stop_unit", Target("unit", "x.service"), "", {}, (), (), "")
    refused = guard(step, NodeAccess(Places(root=tmp_path)))
    assert refused is not None
    assert "no bus here" in refused.reason


def test_who_declares_a_container_is_named() -> None:
    assert "Swarm runs it for the service web" in find_declared(
        {"com.docker.swarm.service.name": "web"}, "web.1.x"
    )
    assert "Nomad" in find_declared({"com.hashicorp.nomad.alloc_id": "9"}, "task")
    assert find_declared({"maintainer": "me"}, "web") == ""


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("web-5bfc566559-4gq8g", "the deployment web"),
        ("kube-proxy-qq6xs", "the daemon set, job or replica set kube-proxy"),
        ("db-0", "the stateful set db"),
        ("crashing", None),
    ],
)
def test_the_owner_of_a_pod_is_told_by_its_name(pod: str, owner: str | None) -> None:
    assert find_pod_owner(pod) == owner


def test_volumes_and_namespaces_of_others_make_them_dependants() -> None:
    store: JsonObject = {"Id": "a" * 64, "Name": "/store"}
    others: dict[str, JsonObject] = {
        "1": {"Id": "1", "Name": "/reader", "HostConfig": {"VolumesFrom": ["store:ro"]}},
        "2": {"Id": "2", "Name": "/tracer", "HostConfig": {"PidMode": "container:" + "a" * 64}},
        "3": {"Id": "3", "Name": "/alone", "HostConfig": {"NetworkMode": "none"}},
    }
    assert find_dependants(store, others) == ("container reader", "container tracer")


@pytest.mark.root
@pytest.mark.live
@pytest.mark.debian("util-linux")
def test_hidden_sockets_are_reported_as_not_seen() -> None:
    """Another user's view: nobody may look at the descriptors of root's processes."""
    code = (
        "import os\nfrom pathlib import Path\n"
        "from nodescope.remedy.guard.socket_use import SocketReading\n"
        "from nodescope.sources.processes.process_table import read_process_table\n"
        "table = read_process_table(Path('/proc'))\n"
        "reading = SocketReading(Path('/proc'), table, (), {})\n"
        f"print(reading.use_of([table.processes[{_parent()}]]).unseen)\n"
    )
    asked = [sys.executable, "-c", code]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    reachable = subprocess.run([*user, *asked[:1], "-c", "import nodescope"], check=False,
                               capture_output=True)  # fmt: skip
    if reachable.returncode:
        pytest.skip("another user cannot read this checkout")
    done = subprocess.run([*user, *asked], check=True, capture_output=True, text=True)
    assert "the sockets of 1 of its processes (needs root)" in done.stdout


def _parent() -> int:
    import os

    return os.getpid()

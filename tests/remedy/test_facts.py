"""Facts that a plan rests on, read from a tree of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.remedy.plans import make_step

from nodescope.records.action import Target
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Fact, PlanStep
from nodescope.remedy.rests_on.facts import READERS, changed_facts, read_facts
from nodescope.remedy.rests_on.unit_file_facts import list_unit_files, read_file_digest
from nodescope.sources.places import Places


@pytest.fixture
def access(tmp_path: Path) -> NodeAccess:
    _write(tmp_path / "proc/sys/kernel/random/boot_id", "b-1\n")
    _write(tmp_path / "proc/sys/kernel/hostname", "node-1\n")
    _write(tmp_path / "etc/machine-id", "m-1\n")
    _write(tmp_path / "proc/sys/vm/swappiness", "60\n")
    _write(tmp_path / "proc/irq/24/smp_affinity_list", "3\n")
    return NodeAccess(Places(root=tmp_path))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _steps() -> list[PlanStep]:
    value = PlanStep(
        "set_kernel_value", Target("kernel_value", "vm.swappiness"), "", {}, (), (), ""
    )
    irq = {"irq": "24", "cores": "0-1"}
    moved = PlanStep("move_interrupt", Target("network_device", "ens5"), "", irq, (), (), "")
    return [value, moved]


def test_each_fact_that_changed_is_told_with_both_values(
    access: NodeAccess, tmp_path: Path
) -> None:
    facts = read_facts(_steps(), access)
    assert changed_facts(facts, access) == ()
    _write(tmp_path / "proc/sys/kernel/random/boot_id", "b-2\n")
    _write(tmp_path / "etc/machine-id", "m-2\n")
    _write(tmp_path / "proc/sys/vm/swappiness", "10\n")
    (tmp_path / "proc/irq/24/smp_affinity_list").unlink()
    assert changed_facts(facts, access) == (
        "the boot of the node was b-1, and is b-2",
        "the id of the machine was m-1, and is m-2",
        "vm.swappiness was 60, and is 10",
        "the cores of interrupt 24 was 3, and is absent",
    )


def test_a_fact_of_a_later_version_makes_a_plan_stale(access: NodeAccess) -> None:
    (changed,) = changed_facts([Fact("moon_phase", "moon", "full")], access)
    assert "does not know" in changed


def test_a_systemd_that_went_away_makes_a_plan_stale(access: NodeAccess) -> None:
    (changed,) = changed_facts([Fact("unit_run", "x.service", "invocation 1")], access)
    assert changed.startswith("the run of x.service was invocation 1, and is absent")


def test_each_kind_has_its_words() -> None:
    from nodescope.remedy.rests_on.facts import _WORDS

    assert _WORDS.keys() == READERS.keys()


def test_all_files_of_a_unit_are_found(access: NodeAccess, tmp_path: Path) -> None:
    name = "web-api@one.service"
    etc = tmp_path / "etc/systemd/system"
    paths = [
        "usr/lib/systemd/system/web-api@.service", "etc/systemd/system/web-api@.service.d/a.conf",
        "etc/systemd/system/web-.service.d/b.conf", "run/systemd/system/service.d/c.conf",
        "etc/systemd/system.control/web-api@one.service.d/50-MemoryMax.conf",
    ]  # fmt: skip
    for path in paths:
        _write(tmp_path / path, "[Service]\n")
    _write(etc / "web-api@one.service.d/not-read.txt", "")
    (etc / "multi-user.target.wants").mkdir()
    template = "/usr/lib/systemd/system/web-api@.service"
    (etc / "multi-user.target.wants" / name).symlink_to(template)
    (etc / "api.service").symlink_to(f"/etc/systemd/system/{name}")
    found = list_unit_files(name, access)
    links = [f"etc/systemd/system/multi-user.target.wants/{name}", "etc/systemd/system/api.service"]
    assert sorted(found) == sorted(f"/{path}" for path in (*paths, *links))
    assert read_file_digest(found[0], access).startswith("sha256:")
    assert read_file_digest(f"/{links[0]}", access) == f"a link to {template}"


def test_a_link_is_never_followed(access: NodeAccess, tmp_path: Path) -> None:
    path = tmp_path / "etc/systemd/system/x.service"
    path.parent.mkdir(parents=True)
    path.symlink_to("/etc/shadow")
    assert read_file_digest("/etc/systemd/system/x.service", access) == "a link to /etc/shadow"
    (tmp_path / "fifo").parent.mkdir(exist_ok=True)
    assert read_file_digest("/nowhere", access) == "absent"
    assert read_file_digest("/etc", access) == "not a file"


def test_steps_of_units_rest_on_their_units(access: NodeAccess) -> None:
    kinds = {fact.kind for fact in read_facts([make_step("stop_unit", "x.service")], access)}
    assert {"boot", "machine", "systemd_start", "unit_run", "unit_file_state"} <= kinds

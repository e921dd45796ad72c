"""Limits of a slice or a pod: whose they are, who filled them, and paths seen from elsewhere."""

from __future__ import annotations

from tests.diagnosis.told import at, event, first, memory, said, solve_told

from nodescope.records.event import Event
from nodescope.records.node_tables import CgroupNameRow, ContainerRow

_MIB = 1 << 20
SLICE, RENDER, MAIL = "/batch.slice", "/batch.slice/render.service", "/batch.slice/mail.service"
UID = "cdd4839a-ceb9-41ec-86f0-5f75f74173e2"
POD = f"/kubepods/burstable/pod{UID}"


def _kill(memcg: str, task_memcg: str) -> list[Event]:
    return [event(600, "oom_kill", "worker", comm="worker", pid=7, constraint="CONSTRAINT_MEMCG",
                  memcg=memcg, task_memcg=task_memcg, limit_bytes=80 * _MIB)]  # fmt: skip


def test_who_grew_in_a_slice_at_its_limit_is_the_root_and_the_limit_stays_the_slices() -> None:
    rows = [
        *memory(SLICE, (500, 30 * _MIB), (550, 55 * _MIB), (595, 79 * _MIB), limit=80 * _MIB),
        *memory(RENDER, (500, 14 * _MIB), (550, 39 * _MIB), (595, 63 * _MIB)),
        *memory(MAIL, (500, 16 * _MIB), (550, 16 * _MIB), (595, 16 * _MIB)),
    ]
    # The task that was killed is of the other unit: a victim.
    chain = first(solve_told(_kill(SLICE, MAIL), rows))
    assert (chain.root.kind, chain.root.name) == ("unit", "render.service")
    assert chain.mechanism == "memory_limit"
    assert "worker of unit mail.service was killed" in said(chain)
    (raised,) = (step for step in chain.steps if step.kind == "raise_limit")
    assert raised.target is not None
    assert raised.target.name == SLICE


def test_a_slice_in_which_nobody_has_half_stays_the_root() -> None:
    rows = [
        *(row for number in range(4)
          for row in memory(f"{SLICE}/job@{number}.service", (550, 20 * _MIB), (595, 20 * _MIB))),
    ]  # fmt: skip
    killed = _kill(SLICE, f"{SLICE}/job@1.service")
    chain = first(solve_told(killed, rows))
    assert (chain.root.kind, chain.root.name) == ("cgroup", SLICE)


def test_a_path_from_the_root_of_the_machine_is_found_by_its_end() -> None:
    rows = [
        *memory(POD, (500, 10 * _MIB), (550, 40 * _MIB), (595, 70 * _MIB)),
        CgroupNameRow(time_ns=at(10), cgroup=POD, pod_uid=UID, kind="pod"),
        ContainerRow(time_ns=at(10), runtime="containerd", id="a" * 64, name="render", pod="report",
                     namespace="team", cgroup=f"{POD}/{'a' * 64}"),
    ]  # fmt: skip
    killed = _kill(f"/ns-node-7{POD}", f"/ns-node-7{POD}/{'a' * 64}")
    chain = first(solve_told(killed, rows))
    assert (chain.root.kind, chain.root.name) == ("pod", "team/report")
    assert "worker of pod team/report (render) was killed" in said(chain)
    assert "/ns-node-7" not in said(chain)
    assert "it grew steadily" in said(chain)


def test_a_path_that_nobody_recorded_stays_as_the_kernel_wrote_it() -> None:
    chain = first(solve_told(_kill("/a/b.slice", "/a/b.slice/c.service")))
    assert (chain.root.kind, chain.root.name) == ("cgroup", "/a/b.slice")

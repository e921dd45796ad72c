"""Each serious kind leads to its owner: limits, tasks, devices, tables, services, kept cores."""

from __future__ import annotations

import pytest
from tests.diagnosis.told import at, event, first, lines, memory, said, solve_told

from nodescope.diagnosis.finding import Diagnosis
from nodescope.diagnosis.report.summary import path_of
from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS, SYMPTOM_RANKS
from nodescope.records.node_tables import (
    CgroupNameRow,
    CgroupRow,
    ContainerRow,
    NicQueueRow,
    UnitRow,
)
from nodescope.records.recorder_tables import CoreRow
from nodescope.records.table import Row
from nodescope.records.witness_tables import (
    BlockedTaskRow,
    CallTraceRow,
    CoreOwnerRow,
    LimitRow,
)

MIB = 1 << 20
UNIT = "/system.slice/eater.service"
POD = (
    "/kubepods.slice/kubepods-burstable.slice/"
    "kubepods-burstable-pod0ac2e6a1_1111_2222_3333_444455556666.slice/"
    f"cri-containerd-{'ab' * 32}.scope"
)


def oom(second: float, cgroup: str, **more: object) -> Event:
    details = {
        "constraint": "CONSTRAINT_MEMCG", "memcg": cgroup, "task_memcg": cgroup, "comm": "python3",
        "pid": 700, "anonymous_bytes": 90 * MIB, **more,
    }  # fmt: skip
    return event(second, "oom_kill", "python3", "Memory cgroup out of memory: Killed", **details)


def owner(found: Diagnosis) -> tuple[str, str, str | None]:
    chain = first(found)
    return chain.root.kind, chain.root.name, chain.mechanism


# -- limits ------------------------------------------------------------------------


def test_ten_kills_of_a_unit_are_one_incident_of_that_unit() -> None:
    kills = [oom(100 + 3 * each, UNIT, pid=700 + each) for each in range(10)]
    found = solve_told(kills, memory(UNIT, (90, 40 * MIB), (100, 99 * MIB), limit=100 * MIB))
    (finding,) = found.findings
    assert owner(found) == ("unit", "eater.service", "memory_limit")
    assert len(finding.repeats) == 9
    assert "the memory limit of /system.slice/eater.service, 100 MiB," in said(first(found))
    assert "10 times in 27 s, every 3 s" in said(first(found))
    assert "python3 with 90 MiB was killed" in said(first(found))


def test_a_leak_is_told_from_a_step() -> None:
    leak = memory(UNIT, *((10 * n, (20 + 8 * n) * MIB) for n in range(10)), limit=100 * MIB)
    steady = first(solve_told([oom(95, UNIT)], leak))
    assert "it grew steadily, by 48 MiB a minute, from 20 MiB to 92 MiB" in said(steady)
    assert [step.kind for step in steady.steps] == ["look", "raise_limit"]
    assert "find the leak" in steady.steps[0].note
    assert "only delays it" in steady.steps[1].note
    step = memory(UNIT, (0, 20 * MIB), (30, 21 * MIB), (60, 21 * MIB), (90, 95 * MIB))
    assert "it grew in one step" in said(first(solve_told([oom(95, UNIT)], step)))


def test_what_was_not_recorded_of_a_limit_is_said_so() -> None:
    text = said(first(solve_told([oom(95, UNIT)])))
    assert "its size was not recorded" in text
    assert "how it grew was not recorded" in text


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/sys/fs/cgroup/memory/system.slice/eater.service", "eater.service"),
        ("/system.slice/eater.service/payload", "eater.service"),
        (POD, "abababababab"),
        (f"/docker/{'cd' * 32}", "cdcdcdcdcdcd"),
        (f"/system.slice/docker-{'cd' * 32}.scope", "cdcdcdcdcdcd"),
        ("/user.slice/user-1000.slice/session-3.scope",
         "/user.slice/user-1000.slice/session-3.scope"),
        ("/system.slice/run-r12.scope", "run-r12.scope"),
    ],
)  # fmt: skip
def test_a_path_alone_says_whose_limit_it_was(path: str, name: str) -> None:
    assert first(solve_told([oom(95, path)])).root.name == name


def test_a_pod_is_named_where_its_name_is_known() -> None:
    named = CgroupNameRow(
        time_ns=at(1), cgroup=POD, kind="container", pod="train-0", namespace="ml",
        container="worker", container_id="ab" * 32,
    )  # fmt: skip
    assert owner(solve_told([oom(95, POD)], [named]))[:2] == ("pod", "ml/train-0 (worker)")


DOCKER = f"/system.slice/docker.service/docker/{'cd' * 32}"


def test_a_container_is_named_by_its_runtime_not_by_the_unit_that_runs_it() -> None:
    unit = CgroupNameRow(time_ns=at(1), cgroup="/system.slice/docker.service", kind="unit",
                         unit="docker.service")  # fmt: skip
    row = ContainerRow(time_ns=at(90), runtime="docker", id="cd" * 32, name="shop")
    assert owner(solve_told([oom(95, DOCKER)], [unit, row]))[:2] == ("container", "shop")
    started = event(90, "container_started", "shop", id="cd" * 32, name="shop", runtime="docker")
    assert owner(solve_told([started, oom(95, DOCKER)], [unit]))[:2] == ("container", "shop")


def test_a_node_out_of_memory_is_put_down_to_who_grew() -> None:
    kill = event(95, "oom_kill", "victim", constraint="CONSTRAINT_NONE", comm="victim", pid=9,
                 task_memcg="/system.slice/victim.service")  # fmt: skip
    rows = [
        *memory("/system.slice/victim.service", (10, 500 * MIB), (90, 510 * MIB)),
        *memory(UNIT, (10, 100 * MIB), (50, 900 * MIB), (90, 2000 * MIB)),
        *memory("/system.slice", (10, 700 * MIB), (90, 2600 * MIB)),
    ]
    assert owner(solve_told([kill], rows)) == ("unit", "eater.service", "memory_of_the_node")


def test_a_fork_that_is_rejected_leads_to_the_unit() -> None:
    told = event(95, "pids_limit", UNIT, "cgroup: fork rejected by pids controller", cgroup=UNIT)
    rows: list[Row] = [CgroupRow(time_ns=at(10 * n), cgroup=UNIT, tasks=20 * n) for n in range(10)]
    rows.append(LimitRow(time_ns=at(90), name="pids", scope=UNIT, used=200, most=200))
    found = solve_told([told], rows)
    assert owner(found) == ("unit", "eater.service", "task_limit")
    assert "as many tasks as it may, 200," in said(first(found))
    assert first(found).steps[1].value == "tasks"


def test_a_kill_and_an_error_of_a_disk_in_one_second_are_two() -> None:
    disk = event(100, "disk_io_error", "sdb", device="sdb1", error="I/O")
    found = solve_told([oom(100, UNIT), disk])
    assert {(each.symptom.kind, each.chains[0].root.name) for each in found.findings} == {
        ("oom_kill", "eater.service"), ("disk_io_error", "sdb"),
    }  # fmt: skip


# -- tasks -------------------------------------------------------------------------

FROZEN = "entry_SYSCALL_64;do_syscall_64;ksys_write;vfs_write;__percpu_down_read;percpu_rwsem_wait"


def hung(second: float = 100, comm: str = "dd", pid: int = 321, **more: object) -> Event:
    text = f"INFO: task {comm}:{pid} blocked for more than 20 seconds."
    return event(second, "hung_task", comm, text, comm=comm, pid=pid, blocked_s=20, **more)


def trace(second: float, stack: str, **more: object) -> CallTraceRow:
    return CallTraceRow(time_ns=at(second), sequence=1, stack=stack, **more)  # type: ignore[arg-type]


def blocked(second: float, stack: str, cgroup: str = UNIT) -> BlockedTaskRow:
    return BlockedTaskRow(
        time_ns=at(second), pid=321, tid=321, comm="dd", cgroup=cgroup, stack=stack,
    )  # fmt: skip


def test_a_blocked_writer_says_what_it_waits_for_and_whose_it_is() -> None:
    found = solve_told([hung()], [blocked(98, FROZEN)])
    assert owner(found) == ("unit", "eater.service", "frozen_file_system")
    assert "dd waits for a frozen file system to be thawed" in said(first(found))
    assert "thaw" in [step.kind for step in first(found).steps]


def test_a_trace_alone_says_what_it_waits_for_and_that_its_owner_is_unknown() -> None:
    found = solve_told([hung()], [trace(100.1, FROZEN, pid=321, comm="dd")])
    assert owner(found) == ("process", "dd", "frozen_file_system")
    assert any("whose process it is was not recorded" in each.consequence for each in found.missing)


def test_a_hung_task_after_errors_of_a_disk_leads_to_the_disk() -> None:
    journal = "kthread;kjournald2;jbd2_journal_commit_transaction;io_schedule"
    error = event(90, "disk_io_error", "nvme1n1", "I/O error, dev nvme1n1", device="nvme1n1")
    found = solve_told(
        [error, hung(100, "jbd2/nvme1n1-8")],
        [trace(100.1, journal, pid=321, comm="jbd2/nvme1n1-8")],
    )
    (finding,) = found.findings
    assert owner(found)[:2] == ("device", "nvme1")
    assert {finding.symptom.kind, *(each.kind for each in finding.also)} == {
        "disk_io_error", "hung_task",
    }  # fmt: skip


def test_a_lock_leads_to_who_holds_it() -> None:
    told = hung(waits_for="mutex", holder="holder", holder_pid=77)
    rows: list[Row] = [UnitRow(time_ns=at(5), unit="holder.service", main_pid=77,
                               cgroup="/system.slice/holder.service")]  # fmt: skip
    found = solve_told([told], rows)
    assert owner(found)[:2] == ("unit", "holder.service")
    assert "likely holds the mutex" in said(first(found))


def test_a_soft_lockup_of_a_bare_log_leads_to_its_mechanism() -> None:
    told = lines((100, "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:812]"))
    walk = "do_syscall_64;ksys_read;vfs_read;seq_read;memcg_numa_stat_show;mem_cgroup_nr_lru_pages"
    found = solve_told(told, [trace(100.1, walk, cpu=3, pid=812, comm="kubelet")])
    chain = first(found)
    assert chain.mechanism == "memcg_walk_by_read"
    assert [link.kind for link in chain.links][:3] == ["event", "task", "mechanism"]
    assert chain.links[2].strength < 3  # samples say more


def test_a_fault_of_a_module_is_of_the_module() -> None:
    told = event(100, "kernel_oops", "nvidia", "BUG: kernel NULL pointer dereference",
                 comm="python3", pid=5, function="nv_open_device", module="nvidia")  # fmt: skip
    assert owner(solve_told([told])) == ("module", "nvidia", "kernel_fault")


# -- devices, tables, services -----------------------------------------------------


def test_a_file_system_is_read_only_because_of_its_disk() -> None:
    found = solve_told(
        [
            event(100, "disk_io_error", "sda", "I/O error, dev sda, sector 5", device="sda"),
            event(100.2, "fs_error", "sda1", "EXT4-fs error (device sda1)", device="sda1"),
            event(100.4, "fs_readonly", "sda1", "Remounting filesystem read-only", device="sda1"),
        ]
    )
    (finding,) = found.findings
    assert finding.symptom.kind == "fs_readonly"
    assert owner(found) == ("device", "sda", "failed_requests")


def test_a_device_without_room_below_it_is_not_to_be_replaced() -> None:
    line = (
        "critical space allocation error, dev loop1, sector 32948 op 0x1:(WRITE) "
        "flags 0x9800 phys_seg 1 prio class 2"
    )
    found = solve_told(lines((100, line)))
    assert owner(found) == ("device", "loop1", "backing_full")
    assert [step.kind for step in first(found).steps] == ["look", "free_space"]


def test_a_gpu_is_lost_after_errors_of_its_bus() -> None:
    found = solve_told(
        [
            event(50, "pcie_error", "0000:3b:00.0", "PCIe Bus Error", device="0000:3b:00.0"),
            event(100, "gpu_lost", "0000:3b:00", "Xid 79", device="0000:3b:00", xid=79),
        ]
    )
    root = owner(found)
    assert root[0] == "device"
    assert "3b:00" in root[1]
    assert "50 s before, on the same device: PCIe Bus Error" in said(first(found))
    assert [step.kind for step in first(found).steps][-1] == "replace_hardware"


def test_a_full_table_says_how_it_filled_and_that_nobody_is_known() -> None:
    full = event(100, "conntrack_full", "conntrack", "nf_conntrack: table full", limit="conntrack")
    rows = [
        LimitRow(time_ns=at(20 * n), name="conntrack", scope="node", used=50_000 * n, most=262_144)
        for n in range(6)
    ]
    found = solve_told([full], rows)
    chain = first(found)
    assert not chain.explains
    assert "250,000 of 262,144 are used; it grew steadily, by 150,000 a minute" in said(chain)
    (finding,) = found.findings
    assert finding.ends is not None
    assert "no samples were recorded" in finding.ends.consequence


def test_threads_are_counted_by_cgroup() -> None:
    full = event(100, "pid_exhausted", "node", "no thread is left", limit="threads")
    rows: list[Row] = [
        *(CgroupRow(time_ns=at(20 * n), cgroup=UNIT, tasks=6000 * n) for n in range(5)),
        *(CgroupRow(time_ns=at(20 * n), cgroup="/init.scope", tasks=3) for n in range(5)),
    ]
    assert owner(solve_told([full], rows))[:2] == ("unit", "eater.service")


def test_an_eviction_for_want_of_memory_names_who_grew() -> None:
    told = event(100, "eviction", "kubelet", "attempting to reclaim memory", resource="memory")
    rows = memory(UNIT, (10, 100 * MIB), (50, 900 * MIB), (90, 2000 * MIB))
    assert owner(solve_told([told], rows))[:2] == ("unit", "eater.service")


def test_a_report_of_the_hardware_ends_there() -> None:
    told = event(100, "edac_ue", "mc0", "EDAC MC0: 1 UE", device="CPU_SrcID#0_MC#0_DIMM#1")
    assert owner(solve_told([told]))[0] == "device"
    unknown = solve_told([event(100, "mce", "kernel", "Machine check events logged")])
    assert unknown.findings[0].ends is not None
    assert "hardware reports it" in unknown.findings[0].ends.consequence


# -- a core that something else kept -----------------------------------------------


def cores(full: int, from_s: int, to_s: int, state: str = "user") -> list[CoreRow]:
    """Two cores, idle; one of them full of one state for some seconds."""
    states = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
    spent = [dict.fromkeys(("idle", *states), 0) for _ in range(2)]
    rows: list[CoreRow] = []
    for second in range(130):
        for cpu in (0, 1):
            busy = cpu == full and from_s <= second < to_s
            spent[cpu][state if busy else "idle"] += 100
            rows.append(CoreRow(time_ns=at(second), cpu=cpu, **spent[cpu]))
    return rows


PAUSED = (
    "ena 0000:00:05.0 eth0: TX q 1 is paused for too long (threshold 5000000). "
    "Time since last napi 6000000 usec. napi scheduled: 1"
)
RESET = ((100, PAUSED), (100.1, "ena 0000:00:05.0 eth0: Trigger reset is on"))
QUEUE = NicQueueRow(time_ns=at(1), nic="eth0", queue=1, irq=40, effective="1", affinity="1")
HOG = CoreOwnerRow(
    time_ns=at(97), cpu=1, pid=55, tid=55, comm="spin", cgroup=UNIT, policy="fifo", priority=20,
    affinity="1", owned_ns=5 * SECOND_NS,
)  # fmt: skip


def test_a_realtime_process_on_the_queues_core_is_the_cause() -> None:
    found = solve_told(lines(*RESET), [QUEUE, HOG, *cores(1, 92, 100)])
    assert owner(found) == ("unit", "eater.service", "realtime_process")
    assert "scheduled as fifo, priority 20" in said(first(found))


def test_an_ordinary_process_on_the_queues_core_is_not() -> None:
    row = CoreOwnerRow(time_ns=at(97), cpu=1, pid=55, tid=55, comm="spin", policy="other",
                       owned_ns=5 * SECOND_NS)  # fmt: skip
    found = solve_told(lines(*RESET), [QUEUE, row, *cores(1, 92, 100)])
    assert not first(found).explains
    assert any("gives way" in each.statement for each in found.findings[0].ruled_out)


def test_a_core_that_the_hypervisor_took_is_the_hosts() -> None:
    found = solve_told(lines(*RESET), [QUEUE, *cores(1, 92, 100, "steal")])
    assert owner(found) == ("host", "the hypervisor", "steal")


def test_a_busy_core_that_serves_another_queue_explains_nothing() -> None:
    found = solve_told(lines(*RESET), [QUEUE, HOG, *cores(0, 92, 100)])
    assert not first(found).explains


# -- every kind --------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(set(SYMPTOM_RANKS) - {"core_held"}))
def test_every_kind_with_a_rank_is_told_with_nothing_else_known(kind: str) -> None:
    found = solve_told([event(100, kind, "thing", f"{kind} of thing")])
    (finding,) = found.findings
    assert finding.symptom.kind == kind
    if not any(chain.explains for chain in finding.chains):
        assert finding.ends is not None, EVENT_KINDS[kind].way
        assert finding.ends.consequence


def test_what_shares_a_cause_is_one_finding() -> None:
    found = solve_told(
        [
            event(100, "disk_io_error", "sda", "I/O error, dev sda", device="sda"),
            event(400, "fs_error", "sda1", "EXT4-fs error (device sda1)", device="sda1"),
        ]
    )
    (finding,) = found.findings
    assert [each.kind for each in finding.also] == ["disk_io_error"]
    assert finding.symptom.time_ns == at(400)
    assert at(400) - at(100) == 300 * SECOND_NS


def test_a_device_whose_worker_waits_is_not_at_fault() -> None:
    stalled = event(100, "io_stalled", "loop1", "2 requests wait", device="loop1")
    frozen = "worker_thread;process_one_work;loop_process_work;lo_rw_aio.isra.0;percpu_rwsem_wait"
    worker = BlockedTaskRow(
        time_ns=at(99), pid=9, tid=9, comm="kworker/u8:1+loop1", cgroup="/", stack=frozen
    )
    found = solve_told([stalled], [worker, blocked(99, "vfs_write;ext4_file_write_iter")])
    assert owner(found) == ("device", "loop1", "frozen_file_system")
    assert "tasks that were blocked meanwhile: unit eater.service (1)" in said(first(found))
    assert [step.kind for step in first(found).steps] == ["thaw"]


def test_a_line_that_a_user_wrote_is_labelled() -> None:
    line = event(100, "disk_io_error", "sdb", "I/O error, dev sdb", device="sdb", user=True)
    found = solve_told([line])
    assert "a user wrote this line to /dev/kmsg, not the kernel" in said(first(found))
    assert found.findings[0].symptom.statement.endswith("not the kernel)")


def test_a_reading_that_contradicts_a_line_ends_the_chain() -> None:
    told = lines((100, "VFS: file-max limit 810342 reached"))
    rows = [LimitRow(time_ns=at(95), name="files", scope="node", used=106_552, most=810_342)]
    (finding,) = solve_told(told, rows).findings
    assert not finding.chains[0].explains
    assert finding.ends is not None
    assert "106,552 of 810,342 were used" in finding.ends.consequence


def test_a_nic_reset_and_an_error_of_a_disk_are_two_incidents_though_a_task_hangs() -> None:
    told = lines(
        (99.0, "INFO: task db:12 blocked for more than 120 seconds."),
        (100.192, "ena 0000:00:06.0 ens6: Reset device"),
        (100.216, "I/O error, dev sdb, sector 5 op 0x1:(WRITE) flags 0x9800 phys_seg 1"),
    )
    reset = event(100.192, "nic_reset", "ens6", "ens6 was reset", interface="ens6")
    events = sorted([*told, reset], key=lambda each: each.time_ns)
    for finding in solve_told(events).findings:
        kinds = {each.kind for each in (finding.symptom, *finding.also)}
        assert not {"nic_reset", "disk_io_error"} <= kinds


def test_what_was_reported_later_is_not_called_earlier() -> None:
    hang = event(100, "kubelet_unhealthy", "kubelet", "PLEG is not healthy")
    error = event(100.024, "disk_io_error", "sdb", "I/O error, dev sdb", device="sdb")
    chain = first(solve_told([hang, error]))
    (link,) = [each for each in chain.links if each.kind in ("earlier", "later")]
    assert link.kind == "later"
    assert "24 ms later" in link.statement


def test_no_step_shows_a_table_without_readings_of_the_cgroup() -> None:
    kill = oom(100, UNIT)
    bare = first(solve_told([kill]))
    grown = first(solve_told([kill], memory(UNIT, (90, 40 * MIB), (100, 99 * MIB))))
    assert bare.steps[0].view is not None
    assert bare.steps[0].view.what == "events"
    assert all(link.show.what != "table" for link in bare.links)
    assert grown.steps[0].view is not None
    assert grown.steps[0].view.table == "cgroups"


def test_tasks_are_counted() -> None:
    fork = event(100, "pids_limit", UNIT, "fork rejected", cgroup=UNIT)
    assert first(solve_told([fork])).steps[0].note == "what needs so many tasks?"


def test_a_chain_is_no_surer_than_a_job_that_only_the_time_ties() -> None:
    kills = [oom(second, UNIT) for second in (100, 104, 108)]
    job = event(110, "job_failed", "train", "the job failed")
    chain = first(solve_told([*kills, job]))
    (link,) = [each for each in chain.links if each.kind == "job"]
    assert "2 s after" in link.statement
    assert chain.confidence <= link.probability < 0.65


def test_a_few_errors_of_a_disk_are_no_reason_to_replace_it() -> None:
    def steps(times: int) -> set[str]:
        text = "I/O error, dev sdb, sector 5 op 0x1:(WRITE) flags 0x9800 phys_seg 1"
        told = lines(*((100.0 + 20 * each, text) for each in range(times)))
        return {step.kind for step in first(solve_told(told)).steps}

    assert "replace_hardware" not in steps(1)
    assert "replace_hardware" in steps(3)


def test_the_way_from_a_gpu_to_its_user_does_not_return_to_the_gpu() -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=train.py, GPU has fallen off the bus."
    assert path_of(first(solve_told(lines((100, text))))) == "0000:3b:00.0 → train.py"


def test_the_unit_whose_task_hangs_is_named_beside_the_stalled_device() -> None:
    stall = event(100, "io_stalled", "loop1", "2 requests wait", device="loop1", waiting=2)
    hung = lines((98, "INFO: task session-cache:326 blocked for more than 8 seconds."))
    row = UnitRow(time_ns=at(50), unit="cache.service", main_pid=326,
                  cgroup="/system.slice/cache.service")  # fmt: skip
    chain = first(solve_told([*hung, stall], [row]))
    assert (chain.root.kind, chain.root.name) == ("device", "loop1")
    (link,) = [each for each in chain.links if each.kind == "blocked"]
    assert link.subject == "cache.service"
    assert "session-cache:326" in link.statement


def test_the_root_of_all_cgroups_is_never_a_cause() -> None:
    kill = oom(100, "/", constraint="CONSTRAINT_NONE", memcg=None)
    hung = lines((400, "INFO: task db:12 blocked for more than 120 seconds."))
    row = BlockedTaskRow(time_ns=at(395), pid=12, tid=12, comm="db", cgroup="/",
                         stack="do_syscall_64;fuse_simple_request;request_wait_answer")  # fmt: skip
    found = solve_told([kill, *hung], [row])
    roots = [chain.root for each in found.findings for chain in each.chains]
    assert roots
    assert all((root.kind, root.name) != ("cgroup", "/") for root in roots)

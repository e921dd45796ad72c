from __future__ import annotations

import dataclasses
import errno
import os
import resource
import sys
from pathlib import Path

import pytest

from nodescope.sources.access import State, check_access, file_verdicts, perf_verdicts
from nodescope.sources.access.file_verdicts import ProcessesSeen
from nodescope.sources.access.privileges import (
    CAPABILITY_BITS,
    Privileges,
    parse_status,
    read_privileges,
)
from nodescope.sources.access.verdict import Access, Attempt

OK = Attempt()
EACCES, EPERM, ENOSYS, ENOENT = (
    Attempt(code) for code in (errno.EACCES, errno.EPERM, errno.ENOSYS, errno.ENOENT)
)
ALL = frozenset(CAPABILITY_BITS)
NOBODY = Privileges(
    uid=65534,
    capabilities=frozenset(),
    bounding=ALL,
    seccomp_filter=False,
    perf_event_paranoid=2,
    perf_event_mlock_kb=516,
    kptr_restrict=1,
    dmesg_restrict=1,
    memlock_bytes=8 << 20,
    interpreter="/usr/bin/python3.11",
)
ROOT = dataclasses.replace(NOBODY, uid=0, capabilities=ALL)
CONTAINER = dataclasses.replace(
    NOBODY, uid=0, bounding=frozenset(), seccomp_filter=True, initial_pid_namespace=False
)
WORKING = Access("samples", "", State.WORKS, "")
SETCAP = (
    "setcap cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore+ep "
    "/usr/bin/python3.11"
)
LINUX_5_4, LINUX_5_8 = 37, 39  # the last capability they have


@pytest.mark.parametrize(
    ("privileges", "answer", "state", "why", "command", "manifest"),
    [
        (NOBODY, EACCES, State.DENIED, "kernel.perf_event_paranoid is 2 and CAP_PERFMON is missing",
         "sysctl -w kernel.perf_event_paranoid=-1", '{add: ["PERFMON"]}'),
        (dataclasses.replace(NOBODY, perf_event_paranoid=4), EACCES, State.DENIED,
         "perf_event_paranoid is 4", SETCAP, '{add: ["PERFMON"]}'),
        (dataclasses.replace(NOBODY, last_capability=LINUX_5_4), EACCES, State.DENIED,
         "CAP_SYS_ADMIN is missing",
         SETCAP.replace("cap_perfmon", "cap_sys_admin").replace(",cap_checkpoint_restore", ""),
         '{add: ["SYS_ADMIN"]}'),
        (dataclasses.replace(NOBODY, last_capability=LINUX_5_8), EACCES, State.DENIED,
         "CAP_PERFMON is missing", SETCAP.replace(",cap_checkpoint_restore", ""),
         '{add: ["PERFMON"]}'),
        (dataclasses.replace(NOBODY, bounding=frozenset()), EACCES, State.DENIED,
         "CAP_PERFMON is missing", "docker run --cap-add PERFMON …", '{add: ["PERFMON"]}'),
        (CONTAINER, EPERM, State.DENIED, "seccomp filter refuses perf_event_open: EPERM",
         "docker run --cap-add PERFMON --security-opt seccomp=unconfined …",
         "seccompProfile: {type: Unconfined}"),
        (dataclasses.replace(CONTAINER, capabilities=ALL), EPERM, State.DENIED,
         "although CAP_PERFMON is held",
         "docker run --cap-add PERFMON --security-opt seccomp=unconfined …",
         "seccompProfile: {type: Unconfined}"),
        (CONTAINER, ENOSYS, State.DENIED, "seccomp filter refuses perf_event_open: ENOSYS",
         "docker run --cap-add PERFMON --security-opt seccomp=unconfined …",
         "seccompProfile: {type: Unconfined}"),
        (ROOT, ENOSYS, State.ABSENT, "CONFIG_PERF_EVENTS", None, None),
        (ROOT, EPERM, State.DENIED, "sandbox or security module",
         "cat /sys/kernel/security/lsm /sys/kernel/security/lockdown", None),
        (ROOT, EACCES, State.DENIED, "security module refuses although CAP_PERFMON is held",
         "cat /sys/kernel/security/lsm /sys/kernel/security/lockdown", None),
        (dataclasses.replace(ROOT, initial_user_namespace=False), EACCES, State.DENIED,
         "of a user namespace does not count", "sysctl -w kernel.perf_event_paranoid=-1",
         "hostUsers: true"),
        (ROOT, Attempt(errno.EMFILE), State.DENIED, "no more open files", "ulimit -n 65536", None),
        (ROOT, Attempt(errno.EOPNOTSUPP), State.ABSENT, "Operation not supported", None, None),
    ],
)  # fmt: skip
def test_why_perf_events_are_refused(
    privileges: Privileges,
    answer: Attempt,
    state: State,
    why: str,
    command: str | None,
    manifest: str | None,
) -> None:
    access = perf_verdicts.judge_sampling(privileges, answer, answer, "nothing")
    assert access.state is state
    assert why in access.why
    assert command in access.commands if command else access.commands == ()
    assert manifest in access.manifest if manifest else access.manifest == ""


@pytest.mark.parametrize(
    ("kernel", "user", "delivered", "state"),
    [
        (OK, OK, "kernel", State.WORKS),
        (OK, OK, "user", State.DEGRADED),
        (OK, OK, "nothing", State.ABSENT),
        (EACCES, OK, "nothing", State.DEGRADED),
        (EACCES, EACCES, "nothing", State.DENIED),
    ],
)
def test_opening_is_not_enough_samples_must_arrive(
    kernel: Attempt, user: Attempt, delivered: str, state: State
) -> None:
    assert perf_verdicts.judge_sampling(NOBODY, kernel, user, delivered).state is state


def test_what_needs_samples_shares_their_fate_and_remedy() -> None:
    denied = perf_verdicts.judge_sampling(NOBODY, EACCES, EACCES, "nothing")
    for access in (
        perf_verdicts.judge_cycles(denied, EACCES),
        perf_verdicts.judge_sample_cgroup(denied, EACCES, Path("/sys/fs/cgroup")),
        perf_verdicts.judge_ring_memory(NOBODY, denied, OK, 0, 2, 1 << 20),
    ):
        assert access.state is State.DENIED
        assert "needs samples" in access.why
        assert access.commands == denied.commands


def test_cycles_and_cgroup_of_a_kernel_that_has_them_or_not() -> None:
    assert perf_verdicts.judge_cycles(WORKING, OK).state is State.WORKS
    assert perf_verdicts.judge_cycles(WORKING, ENOENT).state is State.ABSENT
    judge = perf_verdicts.judge_sample_cgroup
    assert judge(WORKING, OK, Path("/sys/fs/cgroup")).state is State.WORKS
    assert judge(WORKING, OK, None).state is State.DEGRADED
    assert judge(WORKING, Attempt(errno.EINVAL), Path("/sys/fs/cgroup")).state is State.ABSENT


@pytest.mark.parametrize(
    ("privileges", "visible", "state", "why", "command"),
    [
        (ROOT, True, State.WORKS, "shown", None),
        (NOBODY, False, State.DENIED, "kptr_restrict is 1 and CAP_SYSLOG is missing", SETCAP),
        (dataclasses.replace(ROOT, kptr_restrict=2), False, State.DENIED,
         "kptr_restrict is 2: hidden from everyone", "sysctl -w kernel.kptr_restrict=1"),
        (dataclasses.replace(NOBODY, kptr_restrict=0), False, State.DENIED,
         "perf_event_paranoid is 2 and CAP_SYSLOG is missing",
         "sysctl -w kernel.perf_event_paranoid=-1"),
        (dataclasses.replace(ROOT, initial_user_namespace=False), False, State.DENIED,
         "user namespace", None),
    ],
)  # fmt: skip
def test_kernel_symbols(
    privileges: Privileges, visible: bool, state: State, why: str, command: str | None
) -> None:
    access = file_verdicts.judge_kernel_symbols(privileges, OK, visible=visible)
    assert access.state is state
    assert why in access.why
    assert command in access.commands if command else access.commands == ()


@pytest.mark.parametrize(
    ("privileges", "seen", "state", "why"),
    [
        (ROOT, ProcessesSeen(read=9), State.WORKS, "9 processes read"),
        (ROOT, ProcessesSeen(read=9, refused=1), State.WORKS, "1 of 10 processes are closed"),
        (ROOT, ProcessesSeen(refused=9), State.DENIED, "although CAP_SYS_PTRACE is held"),
        (NOBODY, ProcessesSeen(refused=9), State.DENIED, "CAP_SYS_PTRACE is missing"),
        (NOBODY, ProcessesSeen(read=1, refused=8), State.DEGRADED, "8 of 9 processes"),
        (NOBODY, ProcessesSeen(read=1, hidepid=True), State.DEGRADED, "hidepid"),
        (ROOT, ProcessesSeen(read=1, hidepid=True), State.WORKS, "1 processes read"),
        (NOBODY, ProcessesSeen(read=8, binary_refused=1), State.DEGRADED, "CAP_DAC_READ_SEARCH"),
        (dataclasses.replace(ROOT, initial_pid_namespace=False), ProcessesSeen(read=3),
         State.DEGRADED, "pid namespace"),
    ],
)  # fmt: skip
def test_binaries_of_other_processes(
    privileges: Privileges, seen: ProcessesSeen, state: State, why: str
) -> None:
    access = file_verdicts.judge_binaries(privileges, seen)
    assert (access.state, why in access.why) == (state, True), access.why


def test_a_pod_without_host_pid_is_told_the_manifest_line() -> None:
    pod = dataclasses.replace(ROOT, initial_pid_namespace=False)
    assert file_verdicts.judge_binaries(pod, ProcessesSeen(read=3)).manifest == "hostPID: true"


OPEN = file_verdicts.judge_binaries(ROOT, ProcessesSeen(read=1))
NO_CHECKPOINT = dataclasses.replace(ROOT, capabilities=ALL - {"checkpoint_restore", "sys_admin"})


@pytest.mark.parametrize(
    ("privileges", "answer", "state", "why", "command", "manifest"),
    [
        (ROOT, OK, State.WORKS, "opened", None, ""),
        (ROOT, ENOENT, State.ABSENT, "no map_files", None, ""),
        (NO_CHECKPOINT, EPERM, State.DEGRADED, "CAP_CHECKPOINT_RESTORE is missing", SETCAP,
         '{add: ["CHECKPOINT_RESTORE"]}'),
        (dataclasses.replace(NO_CHECKPOINT, bounding=frozenset()), EPERM, State.DEGRADED,
         "CAP_CHECKPOINT_RESTORE is missing", "docker run --cap-add CHECKPOINT_RESTORE …",
         '{add: ["CHECKPOINT_RESTORE"]}'),
        (dataclasses.replace(NO_CHECKPOINT, last_capability=LINUX_5_8), EPERM, State.DEGRADED,
         "CAP_SYS_ADMIN is missing, and this kernel (before v5.9) has no lesser one",
         SETCAP.replace("cap_checkpoint_restore", "cap_sys_admin"), '{add: ["SYS_ADMIN"]}'),
        (dataclasses.replace(ROOT, initial_user_namespace=False), EPERM, State.DEGRADED,
         "although CAP_CHECKPOINT_RESTORE is held: a user namespace", None, "hostUsers: true"),
    ],
)  # fmt: skip
def test_binaries_that_were_deleted(
    privileges: Privileges,
    answer: Attempt,
    state: State,
    why: str,
    command: str | None,
    manifest: str,
) -> None:
    access = file_verdicts.judge_map_files(privileges, OPEN, answer)
    assert (access.state, why in access.why) == (state, True), access.why
    assert access.commands == ((command,) if command else ())
    assert manifest in access.manifest


def test_deleted_binaries_need_the_processes_first() -> None:
    closed = file_verdicts.judge_binaries(NOBODY, ProcessesSeen(refused=1))
    access = file_verdicts.judge_map_files(NOBODY, closed, EPERM)
    assert (access.state, access.commands) == (State.DENIED, closed.commands)


def test_jit_maps_follow_the_processes_and_their_own_modes() -> None:
    works = file_verdicts.judge_binaries(ROOT, ProcessesSeen(read=1))
    denied = file_verdicts.judge_binaries(NOBODY, ProcessesSeen(refused=1))
    judge = file_verdicts.judge_jit_maps
    assert judge(ROOT, works, ProcessesSeen(maps_found=2)).why.endswith("2 found")
    assert judge(NOBODY, works, ProcessesSeen(maps_refused=1)).state is State.DEGRADED
    assert judge(NOBODY, denied, ProcessesSeen()).state is State.DENIED


@pytest.mark.parametrize(
    ("privileges", "answer", "state", "why"),
    [
        (ROOT, OK, State.WORKS, "readable"),
        (ROOT, ENOENT, State.ABSENT, "no /dev/kmsg"),
        (NOBODY, EPERM, State.DENIED, "dmesg_restrict is 1 and CAP_SYSLOG is missing"),
        (ROOT, EPERM, State.DENIED, "device list"),
        (NOBODY, EACCES, State.DENIED, "EACCES"),
    ],
)
def test_kernel_log(privileges: Privileges, answer: Attempt, state: State, why: str) -> None:
    access = file_verdicts.judge_kernel_log(privileges, answer)
    assert (access.state, why in access.why) == (state, True), access.why


def test_tracepoints() -> None:
    judge = perf_verdicts.judge_tracepoints
    assert judge(ROOT, False, None, OK, OK).state is State.ABSENT
    unmounted = judge(ROOT, True, None, OK, OK)
    assert unmounted.state is State.ABSENT
    assert unmounted.commands == ("mount -t tracefs tracefs /sys/kernel/tracing",)
    assert judge(NOBODY, True, "/t", EACCES, OK).state is State.DENIED
    assert "paranoid is 2" in judge(NOBODY, True, "/t", OK, EACCES).why
    assert judge(ROOT, True, "/t", OK, OK).state is State.WORKS


def test_rings_that_do_not_fit_name_both_limits_and_the_size_that_would_do() -> None:
    access = perf_verdicts.judge_ring_memory(NOBODY, WORKING, EPERM, 20, 96, 1 << 20)
    assert access.state is State.DEGRADED
    assert "20 of 96 rings of 1 MiB" in access.why
    assert "perf_event_mlock_kb is 516" in access.why
    assert "RLIMIT_MEMLOCK 8 MiB" in access.why
    assert "sysctl -w kernel.perf_event_mlock_kb=1028" in access.commands
    assert "IPC_LOCK" in access.manifest
    denied = perf_verdicts.judge_ring_memory(NOBODY, WORKING, EPERM, 0, 96, 1 << 20)
    assert denied.state is State.DENIED


def test_core_time_of_a_container_that_is_shown_fewer_cores() -> None:
    assert file_verdicts.judge_core_time(OK, 96, 96).state is State.WORKS
    assert file_verdicts.judge_core_time(OK, 4, 96).state is State.DEGRADED
    assert file_verdicts.judge_core_time(ENOENT, 0, 96).state is State.ABSENT


def test_archive_folder() -> None:
    judge = file_verdicts.judge_archive
    assert judge("/a", OK, 8 << 30, 4 << 30).state is State.WORKS
    full = judge("/a", OK, 1 << 30, 4 << 30)
    assert full.state is State.DEGRADED
    assert full.commands == ("nodescope record --retention-size 512MiB",)
    assert judge("/a", EACCES, 0, 1).state is State.DENIED
    assert "--archive" in judge("/a", Attempt(errno.EROFS), 0, 1).commands[0]


STATUS = b"""Name:\tcat
CapInh:\t0000000000000000
CapEff:\t0000004400080002
CapBnd:\t000001ffffffffff
Seccomp:\t2
Seccomp_filters:\t1
"""


def test_parse_status() -> None:
    effective, bounding, seccomp = parse_status(STATUS)
    assert effective == {"dac_override", "sys_ptrace", "syslog", "perfmon"}
    assert bounding == ALL
    assert seccomp


def test_parse_status_of_a_kernel_without_seccomp() -> None:
    assert parse_status(b"CapEff:\t0\n") == (frozenset(), frozenset(), False)


def test_privileges_from_a_recorded_tree(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_bytes(STATUS)
    kernel = tmp_path / "sys/kernel"
    kernel.mkdir(parents=True)
    (kernel / "cap_last_cap").write_text("37\n")
    (kernel / "perf_event_paranoid").write_text("-1\n")
    privileges = read_privileges(tmp_path)
    assert privileges.perf_event_paranoid == -1
    assert privileges.kptr_restrict is None
    assert privileges.least("perfmon") == "sys_admin"
    assert privileges.least("syslog") == "syslog"
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert privileges.memlock_bytes == (None if limit == resource.RLIM_INFINITY else limit)
    assert privileges.interpreter == os.path.realpath(sys.executable)


def _checked(archive: Path) -> dict[str, Access]:
    checks = check_access(archive, ring_bytes=64 << 10, retention_bytes=1)
    return {check.source: check for check in checks}


@pytest.mark.root
def test_on_this_machine_as_root_real_samples_arrive(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    descriptors = os.listdir("/proc/self/fd")
    checks = _checked(tmp_path / "not" / "yet" / "there")
    assert checks["samples"].state is State.WORKS, checks["samples"].why
    assert checks["ring-memory"].state is State.WORKS
    assert checks["core-time"].state is State.WORKS
    assert checks["archive"].state is State.WORKS
    assert checks["deleted-binaries"].state is State.WORKS, checks["deleted-binaries"].why
    # It leaves nothing behind.
    assert list(tmp_path.iterdir()) == []
    assert os.sched_getaffinity(0) == before
    assert os.listdir("/proc/self/fd") == descriptors


@pytest.mark.root
def test_rings_beyond_any_memory_are_an_answer_not_a_crash(tmp_path: Path) -> None:
    checks = check_access(tmp_path, ring_bytes=1 << 44, retention_bytes=1)
    rings = next(check for check in checks if check.source == "ring-memory")
    assert rings.state is State.DENIED
    assert "0 of" in rings.why

"""Perf events: from what an attempt answered to what a person needs to know. Pure.

How the kernel refuses, which the verdicts rest on:

- `perf_event_open` answers EACCES when `perf_event_paranoid` and missing
  capabilities forbid it (`perf_allow_kernel`, `perf_allow_cpu`), or when a
  security module does. EPERM or ENOSYS come from a seccomp filter: Docker's and
  containerd's default profiles do that when CAP_PERFMON is not added.
- Mapping a ring answers EPERM when it exceeds `perf_event_mlock_kb` per CPU
  plus RLIMIT_MEMLOCK, unless CAP_IPC_LOCK is held or paranoid is -1.
"""

from __future__ import annotations

import errno
from pathlib import Path

from nodescope.quantities import format_bytes
from nodescope.sources.access.privileges import Privileges
from nodescope.sources.access.verdict import (
    Access,
    Attempt,
    Remedy,
    State,
    allow_capability,
    follows,
)

MOUNT_TRACEFS = "mount -t tracefs tracefs /sys/kernel/tracing"
TRACEFS_VOLUME = "volumes: [{name: tracing, hostPath: {path: /sys/kernel/tracing}}]"
_WHO_REFUSES = Remedy(("cat /sys/kernel/security/lsm /sys/kernel/security/lockdown",))


def judge_perf_refusal(privileges: Privileges, answer: Attempt) -> tuple[State, str, Remedy]:
    """Why `perf_event_open` said no."""
    capability = privileges.least("perfmon")
    grant = allow_capability(privileges, capability)
    held = privileges.holds("perfmon", "sys_admin")
    if answer.errno == errno.ENOSYS and not privileges.seccomp_filter:
        return State.ABSENT, "this kernel has no perf events (CONFIG_PERF_EVENTS)", Remedy()
    if answer.errno in (errno.EPERM, errno.ENOSYS) and privileges.seccomp_filter:
        although = f" although CAP_{capability.upper()} is held" if held else ""
        option = f"--cap-add {capability.upper()} --security-opt seccomp=unconfined"
        return (
            State.DENIED,
            f"a seccomp filter refuses perf_event_open: {answer.answer}{although}",
            Remedy(
                (f"docker run {option} …",),
                "securityContext: {seccompProfile: {type: Unconfined}, "
                f'capabilities: {{add: ["{capability.upper()}"]}}}}',
            ),
        )
    if answer.errno == errno.EPERM:
        return (
            State.DENIED,
            f"a sandbox or security module refuses perf_event_open: {answer.answer}",
            _WHO_REFUSES,
        )
    if answer.errno == errno.EACCES and held and not privileges.initial_user_namespace:
        return (
            State.DENIED,
            f"CAP_{capability.upper()} of a user namespace does not count for perf events",
            Remedy(("sysctl -w kernel.perf_event_paranoid=-1",), "hostUsers: true"),
        )
    if answer.errno == errno.EACCES and held:
        return (
            State.DENIED,
            f"a security module refuses although CAP_{capability.upper()} is held",
            _WHO_REFUSES,
        )
    if answer.errno == errno.EACCES:
        paranoid = privileges.perf_event_paranoid
        level = "unknown" if paranoid is None else str(paranoid)
        return (
            State.DENIED,
            f"kernel.perf_event_paranoid is {level} and CAP_{capability.upper()} is missing",
            Remedy(("sysctl -w kernel.perf_event_paranoid=-1", *grant.commands), grant.manifest),
        )
    if answer.errno in (errno.EMFILE, errno.ENFILE):
        return State.DENIED, f"no more open files: {answer.answer}", Remedy(("ulimit -n 65536",))
    return State.ABSENT, f"perf_event_open answers {answer.answer}", Remedy()


def judge_sampling(
    privileges: Privileges, kernel: Attempt, user: Attempt, delivered: str
) -> Access:
    """Samples of all CPUs; `delivered` is `kernel`, `user` or `nothing`, from a real ring."""
    source, what = "samples", "CPU samples with stacks, all cores"
    if kernel.ok and delivered == "kernel":
        return Access(source, what, State.WORKS, "kernel and user stacks on every core")
    if kernel.ok and delivered == "user":
        return Access(
            source, what, State.DEGRADED, "samples arrive, but without kernel call chains"
        )
    if kernel.ok:
        return Access(
            source, what, State.ABSENT, "perf events open, but this kernel delivers no samples"
        )
    state, why, remedy = judge_perf_refusal(privileges, kernel)
    if user.ok:
        state, why = State.DEGRADED, f"user code only, no kernel stacks: {why}"
    return Access(source, what, state, why, remedy.commands, remedy.manifest)


def judge_sample_cgroup(sampling: Access, attempt: Attempt, cgroup2: Path | None) -> Access:
    """The cgroup of each sample; `cgroup2` is where that hierarchy is mounted."""
    source, what = "sample-cgroup", "cgroup of each sample"
    if sampling.state in (State.DENIED, State.ABSENT):
        return follows(source, what, sampling)
    if not attempt.ok:
        return Access(
            source,
            what,
            State.ABSENT,
            f"this kernel does not tell the cgroup of a sample: {attempt.answer}; v5.7 and "
            "CONFIG_CGROUP_PERF do",
        )
    if cgroup2 is None:
        return Access(
            source,
            what,
            State.DEGRADED,
            "cgroup ids without names: no cgroup2 is mounted",
            ("mount -t cgroup2 none /sys/fs/cgroup/unified",),
            "volumes: [{name: cgroup, hostPath: {path: /sys/fs/cgroup}}]",
        )
    return Access(source, what, State.WORKS, f"named from {cgroup2}")


def judge_cycles(sampling: Access, attempt: Attempt) -> Access:
    """Hardware cycles as the sampling clock."""
    source, what = "cycles", "hardware cycles as sampling clock"
    if sampling.state in (State.DENIED, State.ABSENT):
        return follows(source, what, sampling)
    if attempt.ok:
        return Access(source, what, State.WORKS, "samples in interrupt-disabled code are exact")
    return Access(
        source,
        what,
        State.ABSENT,
        f"no hardware counters: {attempt.answer}, as in most virtual machines; the cpu-clock "
        "timer samples instead",
    )


def judge_ring_memory(
    privileges: Privileges,
    sampling: Access,
    attempt: Attempt,
    mapped: int,
    cpus: int,
    ring_bytes: int,
) -> Access:
    """Room for one ring per CPU: `mapped` of `cpus` succeeded before `attempt` ended it."""
    source, what = "ring-memory", "locked memory for the rings"
    if sampling.state in (State.DENIED, State.ABSENT):
        return follows(source, what, sampling)
    wanted = f"{cpus} rings of {format_bytes(ring_bytes)}"
    if attempt.ok:
        return Access(source, what, State.WORKS, f"{wanted} mapped")
    if attempt.errno != errno.EPERM:
        return Access(
            source,
            what,
            State.DENIED,
            f"{mapped} of {wanted} mapped: {attempt.answer}",
            ("nodescope record --ring-size 128KiB",),
            "",
        )
    limit = privileges.memlock_bytes
    memlock = "unlimited" if limit is None else format_bytes(limit)
    needed_kb = -(-ring_bytes // 1024) + 4  # a control page per ring
    return Access(
        source,
        what,
        State.DEGRADED if mapped else State.DENIED,
        f"{mapped} of {wanted} mapped: kernel.perf_event_mlock_kb is "
        f"{privileges.perf_event_mlock_kb}, RLIMIT_MEMLOCK {memlock}, CAP_IPC_LOCK is missing",
        (
            f"sysctl -w kernel.perf_event_mlock_kb={needed_kb}",
            "nodescope record --ring-size 128KiB",
        ),
        allow_capability(privileges, "ipc_lock").manifest,
    )


def judge_tracepoints(
    privileges: Privileges, known: bool, mounted: str | None, read: Attempt, opened: Attempt
) -> Access:
    """Tracefs and an event opened from it."""
    source, what = "tracepoints", "kernel tracepoints, tracefs"
    if not known:
        return Access(source, what, State.ABSENT, "this kernel has no tracefs (CONFIG_TRACING)")
    if mounted is None:
        return Access(
            source,
            what,
            State.ABSENT,
            "tracefs is not mounted",
            (MOUNT_TRACEFS,),
            TRACEFS_VOLUME,
        )
    if not read.ok:
        state = read.refusal
        return Access(
            source,
            what,
            state,
            f"{mounted}: {read.answer}",
            (f"mount -o remount,mode=755 {mounted}",),
            "securityContext: {runAsUser: 0}",
        )
    if not opened.ok:
        state, why, remedy = judge_perf_refusal(privileges, opened)
        return Access(source, what, state, why, remedy.commands, remedy.manifest)
    return Access(source, what, State.WORKS, f"read and opened from {mounted}")

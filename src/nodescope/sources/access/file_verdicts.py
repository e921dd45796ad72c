"""Kernel files: from what an attempt answered to what a person needs to know. Pure.

How the kernel refuses, which the verdicts rest on:

- `/proc/kallsyms` opens for everyone but shows zeros (`kallsyms_show_value`):
  with kptr_restrict 0 it needs paranoid ≤ 1 or CAP_SYSLOG, with 1 CAP_SYSLOG,
  with 2 nobody sees it.
- `/proc/PID/{exe,maps,root}` need CAP_SYS_PTRACE for other users' processes.
- `/proc/PID/map_files/…` opens with CAP_CHECKPOINT_RESTORE only (v5.9; before it,
  CAP_SYS_ADMIN), even for one's own process (`proc_map_files_get_link`).
- `/dev/kmsg` answers EACCES by its file mode, EPERM when `dmesg_restrict` is
  set and CAP_SYSLOG is missing, or when the device cgroup leaves it out.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from nodescope.quantities import format_bytes
from nodescope.sources.access.privileges import Privileges
from nodescope.sources.access.verdict import Access, Attempt, State, allow_capability, follows


def judge_core_time(attempt: Attempt, rows: int, online: int) -> Access:
    """`/proc/stat`, against the CPUs that are online."""
    source, what = "core-time", "time of each core, /proc/stat"
    if not attempt.ok:
        state = attempt.refusal
        return Access(
            source,
            what,
            state,
            f"/proc/stat: {attempt.answer}",
            ("mount -t proc proc /proc",),
            "volumes: [{name: proc, hostPath: {path: /proc}}]",
        )
    if rows < online:
        return Access(
            source,
            what,
            State.DEGRADED,
            f"shows {rows} of {online} cores: a container's own /proc/stat (lxcfs)",
            ("umount /proc/stat",),
            "volumes: [{name: proc, hostPath: {path: /proc}}]",
        )
    return Access(source, what, State.WORKS, f"{rows} cores")


def judge_kernel_symbols(privileges: Privileges, attempt: Attempt, visible: bool) -> Access:
    """`/proc/kallsyms`; `visible` is whether a line showed an address other than zero."""
    source, what = "kernel-symbols", "kernel function names, /proc/kallsyms"
    if not attempt.ok:
        state = attempt.refusal
        return Access(source, what, state, f"/proc/kallsyms: {attempt.answer}")
    if visible:
        return Access(source, what, State.WORKS, "addresses are shown")
    restrict, grant = privileges.kptr_restrict, allow_capability(privileges, "syslog")
    if restrict is not None and restrict >= 2:
        return Access(
            source,
            what,
            State.DENIED,
            f"kernel.kptr_restrict is {restrict}: hidden from everyone",
            ("sysctl -w kernel.kptr_restrict=1",),
            "initContainers: [{command: [sysctl, -w, kernel.kptr_restrict=1], "
            "securityContext: {privileged: true}}]",
        )
    if privileges.holds("syslog"):
        why = "addresses are hidden although CAP_SYSLOG is held"
        if not privileges.initial_user_namespace:
            why = "CAP_SYSLOG of a user namespace does not show kernel addresses"
        return Access(source, what, State.DENIED, why, (), "hostUsers: true")
    if restrict == 0:
        # kallsyms_for_perf(): with kptr_restrict 0, paranoid ≤ 1 is enough.
        return Access(
            source,
            what,
            State.DENIED,
            f"kernel.perf_event_paranoid is {privileges.perf_event_paranoid} and CAP_SYSLOG is "
            "missing",
            ("sysctl -w kernel.perf_event_paranoid=-1", *grant.commands),
            grant.manifest,
        )
    return Access(
        source,
        what,
        State.DENIED,
        f"kernel.kptr_restrict is {restrict} and CAP_SYSLOG is missing",
        grant.commands,
        grant.manifest,
    )


@dataclass(frozen=True, slots=True)
class ProcessesSeen:
    """The outcome of reading other processes."""

    read: int = 0
    refused: int = 0  # exe, maps or root not shown
    binary_refused: int = 0  # shown, but the file itself is not readable
    hidepid: bool = False
    maps_found: int = 0
    maps_refused: int = 0


def judge_binaries(privileges: Privileges, seen: ProcessesSeen) -> Access:
    """Other users' binaries through `/proc/PID/root`."""
    source, what = "process-binaries", "binaries of all processes, /proc/PID/root"
    total = seen.read + seen.refused + seen.binary_refused
    closed = f"{seen.refused} of {total} processes are closed to us"
    if not privileges.holds("sys_ptrace") and (seen.refused or seen.hidepid):
        grant = allow_capability(privileges, "sys_ptrace")
        why = closed if seen.refused else "/proc is mounted with hidepid"
        return Access(
            source,
            what,
            State.DEGRADED if seen.read else State.DENIED,
            f"{why} and CAP_SYS_PTRACE is missing",
            grant.commands,
            grant.manifest,
        )
    if seen.refused > seen.read:
        return Access(
            source,
            what,
            State.DEGRADED if seen.read else State.DENIED,
            f"{closed} although CAP_SYS_PTRACE is held: a user namespace or security module",
            manifest="hostUsers: true",
        )
    if seen.binary_refused:
        grant = allow_capability(privileges, "dac_read_search")
        return Access(
            source,
            what,
            State.DEGRADED,
            f"{seen.binary_refused} of {total} binaries may not be read and CAP_DAC_READ_SEARCH "
            "is missing",
            grant.commands,
            grant.manifest,
        )
    if not privileges.initial_pid_namespace:
        return Access(
            source,
            what,
            State.DEGRADED,
            f"only the {total} processes of this container's pid namespace are seen",
            ("docker run --pid=host …",),
            "hostPID: true",
        )
    # A few that stay closed with every capability held: nothing is left to grant.
    note = f"; {closed} although CAP_SYS_PTRACE is held" if seen.refused else ""
    return Access(source, what, State.WORKS, f"{seen.read} processes read{note}")


def judge_map_files(privileges: Privileges, binaries: Access, attempt: Attempt) -> Access:
    """Judge access to deleted or replaced executables, through `/proc/PID/map_files`."""
    source, what = "deleted-binaries", "binaries deleted while they run, /proc/PID/map_files"
    if binaries.state is State.DENIED:
        return follows(source, what, binaries)
    if attempt.ok:
        return Access(source, what, State.WORKS, "opened")
    if attempt.errno == errno.ENOENT:
        why = "this kernel has no map_files (before v4.3, without CONFIG_CHECKPOINT_RESTORE)"
        return Access(source, what, State.ABSENT, why)
    capability = privileges.least("checkpoint_restore")
    lost = "no names for libraries that were upgraded or deleted before recording began"
    if privileges.holds(capability, "sys_admin"):
        who = "a security module" if privileges.initial_user_namespace else "a user namespace"
        why = f"{lost}: {attempt.answer} although CAP_{capability.upper()} is held: {who}"
        return Access(source, what, State.DEGRADED, why, manifest="hostUsers: true")
    why = f"{lost}: CAP_{capability.upper()} is missing"
    if capability == "sys_admin":
        why += ", and this kernel (before v5.9) has no lesser one for it"
    grant = allow_capability(privileges, capability)
    return Access(source, what, State.DEGRADED, why, grant.commands, grant.manifest)


def judge_jit_maps(privileges: Privileges, binaries: Access, seen: ProcessesSeen) -> Access:
    """`perf-PID.map` files of just-in-time compilers, in each process's own `/tmp`."""
    source, what = "jit-maps", "names of JIT code, /tmp/perf-PID.map"
    if binaries.state is State.DENIED:
        return follows(source, what, binaries)
    if seen.maps_refused:
        grant = allow_capability(privileges, "dac_read_search")
        return Access(
            source,
            what,
            State.DEGRADED,
            f"{seen.maps_refused} maps may not be read and CAP_DAC_READ_SEARCH is missing",
            grant.commands,
            grant.manifest,
        )
    found = f"{seen.maps_found} found" if seen.maps_found else "none found now"
    return Access(source, what, State.WORKS, f"readable; {found}")


def judge_kernel_log(privileges: Privileges, attempt: Attempt) -> Access:
    """`/dev/kmsg`."""
    source, what = "kernel-log", "kernel log, /dev/kmsg"
    if attempt.ok:
        return Access(source, what, State.WORKS, "readable")
    grant = allow_capability(privileges, "syslog")
    volume = "volumes: [{name: kmsg, hostPath: {path: /dev/kmsg}}]"
    if attempt.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return Access(
            source,
            what,
            State.ABSENT,
            f"no /dev/kmsg here: {attempt.answer}",
            ("docker run --device /dev/kmsg …",),
            volume,
        )
    if attempt.errno == errno.EPERM and not privileges.holds("syslog", "sys_admin"):
        return Access(
            source,
            what,
            State.DENIED,
            f"kernel.dmesg_restrict is {privileges.dmesg_restrict} and CAP_SYSLOG is missing",
            ("sysctl -w kernel.dmesg_restrict=0", *grant.commands),
            grant.manifest,
        )
    if attempt.errno == errno.EPERM:
        # The device cgroup refuses although capabilities and file mode would not.
        return Access(
            source,
            what,
            State.DENIED,
            "the container's device list does not hold /dev/kmsg",
            ("docker run --device /dev/kmsg …",),
            "securityContext: {privileged: true}",
        )
    return Access(
        source,
        what,
        State.DENIED,
        f"/dev/kmsg: {attempt.answer}",
        ("chmod a+r /dev/kmsg", *grant.commands),
        grant.manifest,
    )


def judge_archive(path: str, write: Attempt, free_bytes: int, retention_bytes: int) -> Access:
    """The folder recordings go to."""
    source, what = "archive", f"archive folder {path}"
    if not write.ok:
        state = write.refusal
        command = f'install -d -o "$(id -un)" {path}'
        if write.errno == errno.EROFS:
            command = "nodescope record --archive /path/on/a/writable/disk"
        return Access(
            source,
            what,
            state,
            f"cannot be written: {write.answer}",
            (command,),
            f"volumes: [{{name: archive, hostPath: {{path: {path}, type: DirectoryOrCreate}}}}]",
        )
    room = f"{format_bytes(free_bytes)} free"
    if free_bytes < retention_bytes:
        return Access(
            source,
            what,
            State.DEGRADED,
            f"{room}, less than the {format_bytes(retention_bytes)} that retention allows: the "
            "disk may fill first",
            (f"nodescope record --retention-size {max(free_bytes // 2 >> 20, 1)}MiB",),
        )
    return Access(source, what, State.WORKS, f"writable, {room}")

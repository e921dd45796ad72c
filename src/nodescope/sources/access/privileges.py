"""The privileges of this process, and the kernel's switches that weigh them.

From `/proc/self/status` (CapEff, CapBnd, Seccomp; proc_pid_status(5)),
`/proc/self/ns/*` and `/proc/sys/kernel/*`. A switch the kernel does not have
is None.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

# include/uapi/linux/capability.h: the bits Nodescope's sources depend on.
CAPABILITY_BITS = {
    "dac_override": 1,
    "dac_read_search": 2,
    "net_admin": 12,
    "ipc_lock": 14,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "syslog": 34,
    "perfmon": 38,  # v5.8: 980737282232; before it, CAP_SYS_ADMIN
    "checkpoint_restore": 40,  # v5.9: 124ea650d307; before it, CAP_SYS_ADMIN
}
# include/linux/proc_ns.h: the inode numbers of the namespaces the kernel booted with.
_INITIAL_USER_NAMESPACE = 0xEFFFFFFD
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC
_SECCOMP_MODE_FILTER = 2
_FIELD = re.compile(rb"^(CapEff|CapBnd|Seccomp):\s*([0-9a-f]+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Privileges:
    """The privileges of this process, before anything is tried."""

    uid: int
    capabilities: frozenset[str]
    bounding: frozenset[str]  # what can still be granted to us or our children
    seccomp_filter: bool
    initial_user_namespace: bool = True
    initial_pid_namespace: bool = True
    last_capability: int | None = None  # the highest this kernel has; None: it does not tell
    perf_event_paranoid: int | None = None
    perf_event_mlock_kb: int | None = None
    kptr_restrict: int | None = None
    dmesg_restrict: int | None = None
    memlock_bytes: int | None = None  # RLIMIT_MEMLOCK; None is unlimited
    interpreter: str = "python3"  # the file that capabilities would be set on

    def holds(self, *names: str) -> bool:
        """Return whether any of these capabilities is in effect."""
        return not self.capabilities.isdisjoint(names)

    def knows(self, name: str) -> bool:
        """Return whether this kernel has that capability."""
        return self.last_capability is None or CAPABILITY_BITS[name] <= self.last_capability

    def least(self, name: str) -> str:
        """Return the capability that allows `name` here: CAP_SYS_ADMIN on older kernels."""
        return name if self.knows(name) else "sys_admin"


def parse_status(status: bytes) -> tuple[frozenset[str], frozenset[str], bool]:
    """Effective and bounding capabilities, and whether a seccomp filter is in force."""
    fields: dict[bytes, bytes] = dict(_FIELD.findall(status))
    return (
        _capabilities(int(fields.get(b"CapEff", b"0"), 16)),
        _capabilities(int(fields.get(b"CapBnd", b"0"), 16)),
        int(fields.get(b"Seccomp", b"0")) == _SECCOMP_MODE_FILTER,
    )


def read_privileges(proc: Path = Path("/proc")) -> Privileges:
    """The privileges of this process."""
    effective, bounding, seccomp = parse_status((proc / "self/status").read_bytes())
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return Privileges(
        uid=os.geteuid(),
        capabilities=effective,
        bounding=bounding,
        seccomp_filter=seccomp,
        initial_user_namespace=_in_namespace(proc, "user", _INITIAL_USER_NAMESPACE),
        initial_pid_namespace=_in_namespace(proc, "pid", _INITIAL_PID_NAMESPACE),
        last_capability=_read_switch(proc, "cap_last_cap"),
        perf_event_paranoid=_read_switch(proc, "perf_event_paranoid"),
        perf_event_mlock_kb=_read_switch(proc, "perf_event_mlock_kb"),
        kptr_restrict=_read_switch(proc, "kptr_restrict"),
        dmesg_restrict=_read_switch(proc, "dmesg_restrict"),
        memlock_bytes=None if limit == resource.RLIM_INFINITY else limit,
        interpreter=str(Path(sys.executable).resolve()),
    )


def _capabilities(mask: int) -> frozenset[str]:
    return frozenset(name for name, bit in CAPABILITY_BITS.items() if mask >> bit & 1)


def _read_switch(proc: Path, name: str) -> int | None:
    try:
        return int((proc / "sys/kernel" / name).read_text())
    except (OSError, ValueError):  # absent, or hidden by a container runtime
        return None


def _in_namespace(proc: Path, kind: str, inode: int) -> bool:
    try:
        return (proc / "self/ns" / kind).stat().st_ino == inode
    except OSError:  # a kernel without that kind of namespace has only one
        return True

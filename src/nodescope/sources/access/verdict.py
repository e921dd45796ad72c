"""The verdict on one source, and the words that all verdicts share."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import StrEnum

from nodescope.sources.access.privileges import Privileges

# `setcap` replaces what a file has: the command must name all of them at once.
ALL_CAPABILITIES = ("perfmon", "syslog", "sys_ptrace", "dac_read_search", "checkpoint_restore")
_OPTIONAL = ("checkpoint_restore",)  # not worth CAP_SYS_ADMIN, which older kernels want instead


class State(StrEnum):
    """How much of a source we get."""

    WORKS = "works"
    DEGRADED = "degraded"  # less than it could be
    DENIED = "denied"  # there, but not for us
    ABSENT = "absent"  # this node does not have it


@dataclass(frozen=True, slots=True)
class Attempt:
    """The kernel's answer when the real thing was tried."""

    errno: int | None = None  # None: it worked

    @property
    def ok(self) -> bool:
        """Return whether the attempt worked."""
        return self.errno is None

    @property
    def refusal(self) -> State:
        """Return what a failure means: the thing is absent, or it is not for us."""
        return State.ABSENT if self.errno == errno.ENOENT else State.DENIED

    @property
    def answer(self) -> str:
        """The kernel's answer by name, as strace shows it."""
        if self.errno is None:
            return "ok"
        return f"{errno.errorcode.get(self.errno, self.errno)} ({os.strerror(self.errno)})"


@dataclass(frozen=True, slots=True)
class Access:
    """One source: how much of it we get, why, and what would allow the rest."""

    source: str
    what: str  # for a person
    state: State
    why: str
    commands: tuple[str, ...] = ()  # alternatives, best first, run as root on the node
    manifest: str = ""  # what a Kubernetes pod needs instead


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that allows a source."""

    commands: tuple[str, ...] = ()
    manifest: str = ""


def allow_capability(privileges: Privileges, name: str) -> Remedy:
    """How to grant one capability, to a program or to a container."""
    name = privileges.least(name)
    wanted = [
        privileges.least(each)
        for each in ALL_CAPABILITIES
        if privileges.knows(each) or each not in _OPTIONAL
    ]
    wanted += [name] if name not in wanted else []
    manifest = f'securityContext: {{capabilities: {{add: ["{name.upper()}"]}}}}'
    if name not in privileges.bounding:
        # A container without it in its bounding set: nothing inside can add it.
        return Remedy((f"docker run --cap-add {name.upper()} …",), manifest)
    names = ",".join(f"cap_{each}" for each in wanted)
    return Remedy((f"setcap {names}+ep {privileges.interpreter}",), manifest)


def follows(source: str, what: str, cause: Access) -> Access:
    """Not to be had because something it needs is not."""
    return Access(
        source,
        what,
        cause.state,
        f"needs {cause.source}: {cause.why}",
        cause.commands,
        cause.manifest,
    )

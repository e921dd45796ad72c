"""The mount table, `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_MAY_HANG = frozenset(
    ("nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "lustre", "gfs2",
     "ocfs2", "gpfs", "beegfs", "glusterfs", "orangefs", "coda", "virtiofs", "vboxsf", "autofs")
)  # fmt: skip
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
# What says that a file system takes no more writes; from v6.13 on ext4 keeps `rw` beside it.
_WRITES_END = ("shutdown", "emergency_ro", "ro")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    number: int
    parent: int
    device: str  # `major:minor`
    root: str  # folder of the file system that is mounted
    point: str
    kind: str
    source: str
    options: frozenset[str]  # of the file system, not of this mount

    @property
    def in_user_space(self) -> bool:
        """Whether a process answers for it."""
        return self.kind.split(".")[0] in ("fuse", "fuseblk")

    @property
    def may_hang(self) -> bool:
        """Whether somebody else must answer, who may not."""
        return self.kind in _MAY_HANG or self.in_user_space

    @property
    def writes_end(self) -> str | None:
        """The option that says that it takes no writes; None if it does."""
        return next((option for option in _WRITES_END if option in self.options), None)


def parse_mountinfo(content: bytes) -> list[Mount]:
    """Return every mount, in the order of the table; a torn line is passed over."""
    found = []
    for line in os.fsdecode(content).split("\n"):
        head, _, tail = line.partition(" - ")
        fields, rest = head.split(" "), tail.split(" ")
        if len(fields) < 6 or len(rest) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
            continue
        mount = Mount(
            int(fields[0]), int(fields[1]), fields[2], _unescape(fields[3]), _unescape(fields[4]),
            rest[0], _unescape(rest[1]), frozenset(rest[2].split(",")),
        )  # fmt: skip
        found.append(mount)
    return found


def _unescape(text: str) -> str:
    if "\\" in text:
        for code, character in _ESCAPES:
            text = text.replace(code, character)
    return text

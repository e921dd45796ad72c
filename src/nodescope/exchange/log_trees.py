"""Which files of a support bundle's folder are imported.

A sosreport and the log bundle of an EKS node are trees of a few hundred files, and have the same
lines of the kernel several times: in the journal, in `/var/log/messages`, in `dmesg`. One of these
is taken, because every line twice would be every event twice: that which reports most trouble, and
of equals the first. Times of the journal and of syslog are wall times; those of `dmesg` are placed
by the file's last change.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nodescope.errors import SourceError
from nodescope.exchange.import_formats import find_format
from nodescope.exchange.importer import whole_blocks
from nodescope.ingest.clean_text import split_lines
from nodescope.ingest.parsed import Notes
from nodescope.sources.kernel_log.messages import classify

_KERNEL_LINES = (
    ("sos_commands/logs/journalctl*",),
    ("var/log/messages*", "var_log/messages*"),
    ("var/log/syslog*", "var_log/syslog*"),
    ("var/log/kern.log*", "var_log/kern.log*"),
    ("sos_commands/kernel/dmesg*",),
    ("kernel/dmesg.human.current",),
    ("kernel/dmesg.current",),
)
_OTHERS = ("kubelet/kubelet.log*", "containerd/containerd-log*", "var/log/sa/sar[0-9]*")
_MARKS = ("sos_commands", "kernel", "var_log")
_MOST = 200


class LogTree(NamedTuple):
    """The files of a bundle to import, and its other logs."""

    chosen: list[Path]
    left: list[Path]


def find_logs(folder: Path) -> LogTree | None:
    """Return the logs of a support bundle; None if a folder is none."""
    top = _top(folder)
    if not any((top / mark).is_dir() for mark in _MARKS):
        return None
    groups = [_matching(top, patterns) for patterns in _KERNEL_LINES]
    logs = [[path for path in group if _is_capture(path)] for group in groups]
    chosen = max(logs, key=_count_trouble, default=[])
    if not chosen:
        chosen = next((group for group in logs if group), [])
    chosen = [*chosen, *(path for path in _matching(top, _OTHERS) if _is_capture(path))]
    known = [path for group in [*groups, _matching(top, _OTHERS)] for path in group]
    return LogTree(chosen, [path for path in known if path not in chosen]) if known else None


def _top(folder: Path) -> Path:
    """Return the folder inside, where that is all there is: a bundle is packed with its name."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _matching(top: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = sorted(path for pattern in patterns for path in top.glob(pattern) if path.is_file())
    return found[:_MOST]


def _count_trouble(group: list[Path]) -> int:
    """Count the different troubles that logs report: one may have stopped before they came."""
    found = {
        (message.kind, message.subject)
        for path in group
        for _, line, _ in split_lines(whole_blocks(path, Notes()))
        if (message := classify(line.decode("utf-8", "replace"))) is not None
    }
    return len(found)


def _is_capture(path: Path) -> bool:
    try:
        find_format(path)
    except SourceError:
        return False
    return True

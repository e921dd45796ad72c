"""Conditions of units that files alone can answer, tried in a mounted image."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nodescope.sources.places import resolve_inside
from nodescope.sources.systemd.unit import Check

# What a running kernel or boot makes: an image cannot answer for it.
_NOT_IN_AN_IMAGE = ("/proc/", "/sys/", "/dev/", "/run/", "/tmp/")  # noqa: S108 names, not uses


def try_checks(root: Path, checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """The checks, with `met` where the files below `root` can tell."""
    return tuple(replace(check, met=_try(root, check)) for check in checks)


def _try(root: Path, check: Check) -> bool | None:
    kind = check.name.removeprefix("Condition").removeprefix("Assert")
    path = check.parameter
    if kind not in _TRIED or "%" in path or not path.startswith("/"):
        return None
    if f"{path}/".startswith(_NOT_IN_AN_IMAGE):
        return None
    return _TRIED[kind](root, path) != check.negated


def _mode(root: Path, path: str) -> int | None:
    try:
        return os.stat(resolve_inside(root, path)).st_mode
    except OSError:
        return None


def _exists(root: Path, path: str) -> bool:
    return _mode(root, path) is not None


def _matches(root: Path, pattern: str) -> bool:
    return bool(glob.glob(pattern.lstrip("/"), root_dir=root))


def _is_directory(root: Path, path: str) -> bool:
    return stat.S_ISDIR(_mode(root, path) or 0)


def _is_link(root: Path, path: str) -> bool:
    parent, name = os.path.split(path)
    return os.path.islink(os.path.join(resolve_inside(root, parent), name))


def _has_entries(root: Path, path: str) -> bool:
    try:
        return bool(os.listdir(resolve_inside(root, path)))
    except OSError:
        return False


def _has_content(root: Path, path: str) -> bool:
    try:
        found = os.stat(resolve_inside(root, path))
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _is_executable(root: Path, path: str) -> bool:
    mode = _mode(root, path) or 0
    return stat.S_ISREG(mode) and bool(mode & 0o111)


_TRIED: dict[str, Callable[[Path, str], bool]] = {
    "PathExists": _exists,
    "PathExistsGlob": _matches,
    "PathIsDirectory": _is_directory,
    "PathIsSymbolicLink": _is_link,
    "DirectoryNotEmpty": _has_entries,
    "FileNotEmpty": _has_content,
    "FileIsExecutable": _is_executable,
}

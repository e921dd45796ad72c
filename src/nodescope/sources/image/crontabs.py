"""Crontabs of an image, its folders of scripts, and its queue of `at` (crontab(5), cron(8))."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodescope.sources.image.boot_items import BootItem, When
from nodescope.sources.image.image_files import ImageFiles

_DAEMONS = ("cron.service", "crond.service", "cronie.service", "anacron.service", "cron.target")
_AT_DAEMONS = ("atd.service",)
_PERIODS = ("hourly", "daily", "weekly", "monthly")
_FIELDS = 5
_ASSIGNMENT = re.compile(r"^\s*[A-Za-z_]\w*\s*=")
_RUN_PARTS_NAME = re.compile(r"[A-Za-z0-9_-]+")  # others are skipped by run-parts(8) and Debian
_LEFT_OVER = (
    ".rpmsave",
    ".rpmorig",
    ".rpmnew",
    ".dpkg-dist",
    ".dpkg-old",
    ".dpkg-new",
    "~",
    ".swp",
)
_LEAVES_IT = "/run/systemd/system"  # what packages test, to leave the work to their timer
_MAX_LINES = 10_000


def read_crontabs(files: ImageFiles, *, strict_names: bool) -> Iterator[BootItem]:
    """Return every entry; with `strict_names` only of files that Debian's cron reads."""
    yield from _crontab(files, "/etc/crontab", with_user=True)
    for name in files.names("/etc/cron.d"):
        if _is_read(name, strict_names):
            yield from _crontab(files, f"/etc/cron.d/{name}", with_user=True)
    for folder in ("/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron"):
        for name in files.names(folder):
            if not name.startswith(".") and not name.startswith("tmp."):
                yield from _crontab(files, f"{folder}/{name}", with_user=False)
    for period in _PERIODS:
        folder = f"/etc/cron.{period}"
        for name in files.names(folder):
            path = f"{folder}/{name}"
            if _is_read(name, strict_names) and files.is_script(path):
                kept = _kept(files.read_text(path))
                yield BootItem(
                    "cron", path, path, f"{period}: {path}", When.SCHEDULE, None, _DAEMONS, kept
                )
    for folder in ("/var/spool/cron/atjobs", "/var/spool/at"):
        for name in files.names(folder):
            if re.fullmatch(r"[a-z][0-9a-f]{13}", name):
                path = f"{folder}/{name}"
                yield BootItem("at", path, path, path, When.SCHEDULE, engines=_AT_DAEMONS)


def _is_read(name: str, strict: bool) -> bool:
    if strict:
        return _RUN_PARTS_NAME.fullmatch(name) is not None
    return not name.startswith(".") and not name.endswith(_LEFT_OVER)


def _kept(text: str) -> str | None:
    return "leaves the work to systemd" if _LEAVES_IT in text else None


def _crontab(files: ImageFiles, path: str, *, with_user: bool) -> Iterator[BootItem]:
    for number, schedule, command in parse_crontab(files.read_text(path), with_user=with_user):
        when = When.BOOT if schedule == "@reboot" else When.SCHEDULE
        shown = f"{schedule} {command}"
        yield BootItem("cron", path, path, shown, when, number, _DAEMONS, _kept(command))


def parse_crontab(text: str, *, with_user: bool) -> Iterator[tuple[int, str, str]]:
    """Return line, schedule and command of each entry."""
    for number, raw in enumerate(text.splitlines()[:_MAX_LINES], 1):
        line = raw.strip()
        if not line or line.startswith("#") or _ASSIGNMENT.match(line):
            continue
        leading = 1 if line.startswith("@") else _FIELDS
        words = line.split(None, leading + with_user)
        if len(words) == leading + with_user + 1:
            yield number, " ".join(words[:leading]), words[-1]

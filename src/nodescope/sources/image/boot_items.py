"""What an image starts without a unit file of its own: a fact each, whoever reads it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class When(StrEnum):
    """The occasion on which something starts."""

    BOOT = "boot"
    SCHEDULE = "schedule"  # at its times, from the first boot on
    DEMAND = "demand"  # when somebody connects, calls or writes


@dataclass(frozen=True, slots=True)
class BootItem:
    """Something that an image starts, and the file that says so."""

    kind: str  # cron, at, sysv, rc-local, container, static pod, quadlet, generator, linger, dbus
    name: str
    path: str  # the file that has it started
    detail: str  # the command, or what else is started
    when: When = When.BOOT
    line: int | None = None
    engines: tuple[str, ...] = ()  # units of which one has to run for it to start
    kept: str | None = None  # why it does not start by its own rules, in words
    links: tuple[str, ...] = ()  # the files that enable it, if others than `path`

"""Packages installed in an image, whichever manager keeps the records, and the files they own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """One installed package."""

    name: str
    version: str
    source: str = ""  # the source package that it was built from
    essential: bool = False  # its distribution declares that no system works without it
    needs: tuple[str, ...] = ()  # what it requires; alternatives as `a|b`
    provides: tuple[str, ...] = ()
    automatic: bool | None = None  # installed only because another needed it; None: not recorded
    scripts: str = ""  # the scripts that run when it is installed

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Installed:
    """What the package managers' records say."""

    packages: Mapping[str, InstalledPackage] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)  # by path without a leading /usr
    unreadable: tuple[str, ...] = ()  # records that are there and cannot be read, in words
    managers: tuple[str, ...] = ()

    def owner(self, path: str | None) -> InstalledPackage | None:
        """Return the package that owns a file of the image; None if none does."""
        name = self.owners.get(unmerged(path)) if path else None
        return self.packages.get(name) if name else None


def unmerged(path: str) -> str:
    """Return a path as both layouts have it: `/lib` is `/usr/lib` on a merged system."""
    return path.removeprefix("/usr")


def join_installed(parts: list[Installed]) -> Installed:
    """Return the records of all managers as one."""
    packages: dict[str, InstalledPackage] = {}
    owners: dict[str, str] = {}
    for part in parts:
        packages = {**part.packages, **packages}
        owners = {**part.owners, **owners}
    return Installed(
        packages,
        owners,
        tuple(each for part in parts for each in part.unreadable),
        tuple(each for part in parts for each in part.managers),
    )

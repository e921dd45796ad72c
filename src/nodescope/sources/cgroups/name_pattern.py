"""The pattern that names of cgroups share: `docker-3f2a….scope` is one of `docker-*.scope`."""

from __future__ import annotations

import re

_VARYING = re.compile(
    r"[0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}"  # uid of a pod, both drivers
    r"|(?=[a-f]*[0-9])[0-9a-f]{12,}"  # id of a container; words of these letters are words
    r"|[0-9]+"
)


def name_pattern(name: str) -> str:
    """A name, with `*` for what varies from one to the next: ids and numbers."""
    return _VARYING.sub("*", name)


def split_path(path: str) -> tuple[str, str]:
    """Parent and name of a cgroup."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def lies_in(path: str, place: str) -> bool:
    """Decide whether a cgroup is another one or lies below it; everything lies in the root."""
    above = place.rstrip("/")
    return path.rstrip("/") == above or path.startswith(f"{above}/")

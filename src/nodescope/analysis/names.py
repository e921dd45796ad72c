"""Cgroups by what their pods and containers are called, as a segment's `cgroup_names` has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nodescope.recording.part import Part

_COLUMNS = ["cgroup", "namespace", "pod", "container"]


def find_named(segment: Part, texts: Sequence[str]) -> tuple[str, ...]:
    """Paths of the pods and containers called so: `pod`, `namespace/pod` or `container`.

    `*` matches anything. A pod is its cgroup and all below it.
    """
    table = segment.read("cgroup_names", _COLUMNS)
    if not table.num_rows:
        return ()
    patterns = [_wildcard(text) for text in texts]
    rows = zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)
    found: dict[str, None] = {}
    for path, namespace, pod, container in rows:
        called = [name for name in (pod, container) if name]
        if pod and namespace:
            called.append(f"{namespace}/{pod}")
        if any(pattern.fullmatch(name) for pattern in patterns for name in called):
            found[path] = None
    return tuple(found)


def name_pods(segment: Part, paths: Sequence[str]) -> list[str]:
    """Whose each cgroup is: `namespace/pod`, outside of pods its container or unit, or itself."""
    table = segment.read("cgroup_names", ["cgroup", "namespace", "pod", "container", "unit"])
    names: dict[str, str] = {}
    for row in table.to_pylist():
        pod = row["pod"] and f"{row['namespace'] or 'default'}/{row['pod']}"
        named = pod or row["container"] or row["unit"]
        if named:
            names[row["cgroup"]] = named
    return [_nearest(path, names) or path for path in paths]


def _nearest(path: str, names: Mapping[str, str]) -> str | None:
    """Return the name of the cgroup, or of the nearest one it lies in."""
    while path:
        if path in names:
            return names[path]
        path = path.rpartition("/")[0]
    return None


def is_within(path: str, parents: Sequence[str]) -> bool:
    """Return whether it is one of these cgroups, or below one."""
    return any(path == parent or path.startswith(f"{parent}/") for parent in parents)


def _wildcard(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")))

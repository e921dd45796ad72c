from __future__ import annotations

import pytest

from nodescope.sources.cgroups.name_pattern import name_pattern, split_path

ID = "3f2a" * 16
UID = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (f"docker-{ID}.scope", "docker-*.scope"),
        (ID, "*"),
        (f"pod{UID}", "pod*"),
        (f"kubepods-burstable-pod{UID.replace('-', '_')}.slice", "kubepods-burstable-pod*.slice"),
        ("session-c12.scope", "session-c*.scope"),
        ("run-r0a1b2c3d4e5f60718293a4b5c6d7e8f9.service", "run-r*.service"),
        ("user@1000.service", "user@*.service"),
        ("kubelet.service", "kubelet.service"),
        ("facade", "facade"),
        ("", ""),
    ],
)
def test_what_varies_is_a_star(name: str, pattern: str) -> None:
    assert name_pattern(name) == pattern


def test_parent_and_name() -> None:
    assert split_path("/a/b") == ("/a", "b")
    assert split_path("/a") == ("/", "a")
    assert split_path("/") == ("/", "")

"""The node that tests of the guard, of facts and of steps on containers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.remedy.guarded_node import GuardedNode, make_guarded_node
from tests.systemd_guest import skip_without_namespaces


@pytest.fixture(scope="session")
def node() -> Iterator[GuardedNode]:
    """Start it once; each test changes only what it made itself."""
    skip_without_namespaces()
    with make_guarded_node() as started:
        yield started

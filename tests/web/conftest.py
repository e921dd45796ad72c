"""The application in this process, over the synthetic story in little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from nodescope.lab.synthetic import END_WALL_NS, Shape, write_story
from nodescope.web.app import Server, make_app
from nodescope.web.security import Safety
from nodescope.web.snapshot import ServedArchive

SMALL = Shape().small()
TO_MS = END_WALL_NS / 1e6
FROM_MS = TO_MS - SMALL.seconds * 1000
RESET_MS = FROM_MS + SMALL.resets[0] * 1000
HELD = {"from_ms": RESET_MS - SMALL.held_s * 1000, "to_ms": RESET_MS}


def open_client(path: Path, safety: Safety | None = None) -> TestClient:
    """A client of an application of its own."""
    app = make_app(Server(ServedArchive(path)), safety or Safety())
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def small_story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "archive"
    write_story(path, SMALL)
    return path


@pytest.fixture(scope="module")
def client(small_story: Path) -> Iterator[TestClient]:
    with open_client(small_story) as client:
        yield client

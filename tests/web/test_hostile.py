"""A recording made to harm: every answer is bounded, says it as text, and the server lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.web.browser.hostile import SCRIPT, WALL_NS, write_hostile
from tests.web.conftest import open_client

from nodescope.web.answers.flames import DEEPEST
from nodescope.web.routes import ROUTES

DEPTH, WIDTH = 20_000, 60_000  # a path's length is 15 bits in the archive
# They step through every function of every sample.
FEWER = ("/api/export/chrome", "/api/export/perfetto")
START_MS = WALL_NS / 1e6


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = tmp_path_factory.mktemp("hostile") / "archive"
    write_hostile(path, DEPTH, WIDTH)
    with open_client(path) as client:
        yield client


def walk(root: dict[str, Any]) -> tuple[int, int, dict[str, Any]]:
    """How many nodes, how deep, and the deepest."""
    count, deepest, last = 0, 0, root
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > deepest:
            deepest, last = depth, node
        waiting += [(child, depth + 1) for child in node["children"]]
    return count, deepest, last


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_answer_is_bounded(hostile: TestClient, route: Any) -> None:
    some = {"from_ms": START_MS + 100, "to_ms": START_MS + 200} if route.path in FEWER else {}
    answer = hostile.get(route.path, params=some)
    assert answer.status_code == 200, answer.text[:500]
    if not route.path.startswith(("/api/export", "/api/bundle", "/api/report")):
        assert len(answer.content) <= 2_000_000
    if answer.headers["content-type"] == "application/json":
        json.loads(answer.content)
        assert b"<script" in answer.content or SCRIPT not in answer.text


def test_a_stack_without_measure_is_cut_and_can_be_followed(hostile: TestClient) -> None:
    root = hostile.get("/api/flame", params={"merge": "none"}).json()["root"]
    count, depth, last = walk(root)
    assert depth <= DEEPEST
    assert last["more"] is True
    assert last["id"]
    deeper = hostile.get("/api/flame", params={"merge": "none", "id": last["id"]}).json()["root"]
    assert deeper["value"] == last["value"]
    assert walk(deeper)[1] == DEEPEST
    assert count < 25_000


@pytest.mark.parametrize("inverted", ["0", "1"])
@pytest.mark.parametrize("merge", ["comm", "none", "cpu", "cgroup", "pod"])
def test_wide_ones_in_every_way(hostile: TestClient, merge: str, inverted: str) -> None:
    parameters = {"merge": merge, "inverted": inverted, "width": "10000"}
    answer = hostile.get("/api/flame", params=parameters)
    assert answer.status_code == 200
    assert len(answer.content) <= 2_000_000
    assert answer.json()["total"] > WIDTH


@pytest.mark.parametrize(
    "times",
    [
        {"from_ms": "-1"}, {"to_ms": "1e300"}, {"from_ms": "nan"}, {"from": "9" * 25},
        {"from": "0001-01-01T00:00:00Z"}, {"to": "9999-12-31T23:59:59Z"},
        {"from_ms": "5", "to_ms": "5"},
    ],
)  # fmt: skip
def test_absurd_times_are_refused(hostile: TestClient, times: dict[str, str]) -> None:
    for path in ("/api/cores", "/api/flame", "/api/heatmap", "/api/events", "/api/diagnosis"):
        answer = hostile.get(path, params=times)
        assert answer.status_code == 400, (path, answer.text[:200])
        assert answer.json()["error"]


def test_a_window_of_all_time(hostile: TestClient) -> None:
    times = {"from_ms": "0", "to_ms": "9223372036854"}
    for path in ("/api/cores", "/api/flame", "/api/heatmap", "/api/events", "/api/diagnosis",
                 "/api/track", "/api/compare", "/api/compare/flame", "/api/quality"):  # fmt: skip
        answer = hostile.get(path, params=times)
        assert answer.status_code == 200, (path, answer.text[:300])
        assert len(answer.content) <= 2_000_000


def test_names_of_downloads_are_harmless(hostile: TestClient) -> None:
    answer = hostile.get("/api/export/folded")
    disposition = answer.headers["content-disposition"]
    name = disposition.removeprefix('attachment; filename="').removesuffix('"')
    assert name.replace("-", "").replace(".", "").isalnum()

"""Every answer, held against what the story was made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.web.conftest import FROM_MS, HELD, RESET_MS, SMALL, TO_MS

from nodescope.exchange.export.catalogue import SAMPLE_FORMATS
from nodescope.web.answers.flames import DEEPEST, SEPARATOR
from nodescope.web.matrix import MEDIA_TYPE, decode_matrix

CULPRIT = "mem_cgroup_nr_lru_pages"


def get(client: TestClient, path: str, /, **parameters: Any) -> Any:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    assert int(answer.headers["content-length"]) == len(answer.content) <= 2_000_000
    assert answer.headers["cache-control"]
    return answer.json()


def matrix(client: TestClient, path: str, /, **parameters: Any) -> Any:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    return decode_matrix(answer.content)


def names_of(node: dict[str, Any]) -> set[str]:
    found, waiting = set(), [node]
    while waiting:
        each = waiting.pop()
        found.add(each["name"])
        waiting += each["children"]
    return found


def test_recording(client: TestClient) -> None:
    known = get(client, "/api/recording")
    assert known["node"]["hostname"] == "ip-10-0-39-1"
    assert known["cpus"] == list(range(SMALL.cores))
    assert abs(known["from_ms"] - FROM_MS) < 2000
    assert abs(known["to_ms"] - TO_MS) < 2000
    assert {"samples", "cores", "events"} <= set(known["tables"])
    assert known["live"] is False
    assert known["samples"] > 0
    assert known["revision"]


# -- the timeline ------------------------------------------------------------------


def test_one_held_core_stays_visible_however_far_away(client: TestClient) -> None:
    for columns in (1, 10, 100, 1200):
        header, blocks = matrix(client, "/api/cores", columns=columns)
        assert header["columns"] <= columns
        assert header["rows"] == list(range(SMALL.cores))
        peak = blocks["peak"][SMALL.held_core]
        assert peak[peak != 255].max() == 254
        others = np.delete(blocks["peak"], SMALL.held_core, axis=0)
        assert others[others != 255].max() < 200
        average = blocks["average"]
        assert average[average != 255].max() < 100


def test_the_strip_zooms_below_a_reading(client: TestClient) -> None:
    middle = RESET_MS - 3000
    header, blocks = matrix(client, "/api/cores", from_ms=middle, to_ms=middle + 50, columns=100)
    assert header["column_ms"] == 0.5
    assert (blocks["peak"][SMALL.held_core] == 254).all()


def test_a_segment_ends_without_a_hole(client: TestClient) -> None:
    _, blocks = matrix(client, "/api/cores", columns=1200, state="total")
    assert (blocks["peak"][:, 5:-5] != 255).all()


def test_cores_can_be_chosen(client: TestClient) -> None:
    header, blocks = matrix(client, "/api/cores", cpu="2-3", columns=10)
    assert header["rows"] == [2, 3]
    assert blocks["peak"].shape == (2, 10)


def test_where_nothing_was_recorded_nothing_is_shown(client: TestClient) -> None:
    _, blocks = matrix(client, "/api/cores", from_ms=0, to_ms=1000, columns=10)
    assert (blocks["peak"] == 255).all()
    assert (blocks["average"] == 255).all()
    assert get(client, "/api/flame", from_ms=0, to_ms=1000)["total"] == 0
    assert matrix(client, "/api/heatmap", from_ms=0, to_ms=1000)[0]["total"] == 0
    assert get(client, "/api/events", from_ms=0, to_ms=1000) == {"events": [], "left_off": 0}
    assert get(client, "/api/diagnosis", from_ms=0, to_ms=1000)["findings"] == []


def test_tracks(client: TestClient) -> None:
    listed = {each["name"]: each for each in get(client, "/api/tracks")}
    assert {"zombies.tracked", "zombies.visible", "zombies.dying"} <= set(listed)
    line = get(client, "/api/track", name="zombies.dying", columns=20)
    known = [value for value in line["most"] if value is not None]
    assert len(known) > 15
    assert known == sorted(known)
    assert abs(known[-1] - SMALL.dying) < 100
    assert len(line["mean"]) == len(line["most"])


def test_processes_are_lanes(client: TestClient) -> None:
    """The pegged core is one core of its process, in its seconds and at no other time."""
    found = get(client, "/api/processes", columns=400)
    assert found["unit"] == "cores"
    assert found["complete"] is True
    lanes = {each["comm"]: each["values"] for each in found["processes"]}
    assert 0 < len(lanes) <= 6
    at = int((HELD["from_ms"] - found["from_ms"]) // found["column_ms"])
    assert max(lanes["kubelet"][at : at + 3]) == pytest.approx(1, abs=0.3)
    assert max(lanes["kubelet"][: at - 1]) < 0.1
    totals = [each["samples"] for each in found["processes"]]
    assert totals == sorted(totals, reverse=True)
    nothing = get(client, "/api/processes", from_ms=0, to_ms=10_000)
    assert nothing["processes"] == []


def test_events(client: TestClient) -> None:
    found = get(client, "/api/events", serious=1)
    kinds = {event["kind"] for event in found["events"]}
    assert "nic_reset" in kinds
    assert all(event["serious"] and event["title"] for event in found["events"])
    only = get(client, "/api/events", kinds="nic_reset,mark")["events"]
    assert {event["kind"] for event in only} == {"nic_reset"}
    assert abs(only[0]["time_ms"] - RESET_MS) < 2000


def test_events_that_are_left_off_are_the_lesser_ones(client: TestClient) -> None:
    everything = get(client, "/api/events")["events"]
    few = get(client, "/api/events", limit=3)
    assert len(few["events"]) == 3
    assert few["left_off"] == len(everything) - 3
    assert all(event["serious"] for event in few["events"])
    assert few["events"] == sorted(few["events"], key=lambda event: event["time_ms"])


# -- samples -----------------------------------------------------------------------


def test_the_heatmap_counts_every_sample(client: TestClient) -> None:
    header, blocks = matrix(client, "/api/heatmap", rows=20, **HELD)
    total = get(client, "/api/flame", **HELD)["total"]
    assert blocks["counts"].shape == (header["columns"], 20)
    assert int(blocks["counts"].sum()) == header["total"] == total
    assert (blocks["kernel"] <= blocks["counts"]).all()
    _, kernel = matrix(client, "/api/heatmap", rows=20, mode="kernel", **HELD)
    assert (kernel["counts"] == blocks["kernel"]).all()


def test_the_culprit_is_in_the_flame_graph_of_the_held_core(client: TestClient) -> None:
    found = get(client, "/api/flame", cpu=str(SMALL.held_core), **HELD)
    assert CULPRIT in names_of(found["root"])
    assert found["root"]["children"][0]["name"] == "kubelet"


def test_values_add_up(client: TestClient) -> None:
    root = get(client, "/api/flame", **HELD)["root"]
    waiting = [root]
    while waiting:
        node = waiting.pop()
        below = sum(child["value"] for child in node["children"])
        assert node["value"] >= below
        if not node.get("more"):
            assert node["value"] == below + node["self"]
        waiting += node["children"]


@pytest.mark.parametrize("merge", ["comm", "cpu", "cgroup", "pod", "pid", "none"])
@pytest.mark.parametrize("inverted", ["0", "1"])
def test_every_way_to_merge_has_every_sample(client: TestClient, merge: str, inverted: str) -> None:
    found = get(client, "/api/flame", merge=merge, inverted=inverted, **HELD)
    assert found["total"] == get(client, "/api/flame", **HELD)["total"]
    children = sum(child["value"] for child in found["root"]["children"])
    assert children >= 0.99 * found["total"]


def test_a_path_is_filled_in(client: TestClient) -> None:
    whole = get(client, "/api/flame", **HELD)["root"]
    node = next(child for child in whole["children"] if child["name"] == "kubelet")
    path = [node["name"]]
    while node["children"]:
        node = node["children"][0]
        path.append(node["name"])
    found = get(client, "/api/flame", path=SEPARATOR.join(path[:3]), **HELD)["root"]
    assert found["name"] == path[2]
    assert path[3] in {child["name"] for child in found["children"]}
    for wrong in ("nobody", SEPARATOR, f"kubelet{SEPARATOR}nobody"):
        answer = client.get("/api/flame", params={"path": wrong, **HELD})
        assert answer.status_code == 400


def test_a_narrow_picture_leaves_out_and_says_so(client: TestClient) -> None:
    wide = get(client, "/api/flame", width=10_000)
    narrow = get(client, "/api/flame", width=100)
    assert narrow["pruned_below"] > wide["pruned_below"]
    assert names_of(narrow["root"]) < names_of(wide["root"])
    lacking, waiting = [], [narrow["root"]]
    while waiting:
        node = waiting.pop()
        waiting += node["children"]
        lacking += [node] if node.get("id") else []
    assert narrow["root"].get("more") or lacking
    for node in lacking[:3]:
        assert get(client, "/api/flame", id=node["id"])["root"]["value"] == node["value"]


def test_filters_choose_samples(client: TestClient) -> None:
    everything = get(client, "/api/flame", **HELD)["total"]
    kernel = get(client, "/api/flame", mode="kernel", **HELD)["total"]
    user = get(client, "/api/flame", mode="user", **HELD)["total"]
    assert kernel + user == everything
    culprit = get(client, "/api/flame", frame=CULPRIT, **HELD)["total"]
    rest = get(client, "/api/flame", no_frame=CULPRIT, **HELD)["total"]
    assert culprit + rest == everything
    assert culprit > 0
    assert get(client, "/api/flame", comm="kube*", **HELD)["total"] >= culprit
    assert get(client, "/api/flame", cgroup="no such", **HELD)["total"] == 0


@pytest.mark.parametrize("path", ["/api/cores", "/api/top", "/api/flame", "/api/heatmap"])
def test_cores_that_were_not_recorded_are_refused(client: TestClient, path: str) -> None:
    """Issue 13, point 7: by the rule of the command line."""
    answer = client.get(path, params={"cpu": "0,900", **HELD})
    assert answer.status_code == 400
    assert "the recording has no core 900" in answer.text
    assert f"cores here: 0-{SMALL.cores - 1}" in answer.text


def test_top(client: TestClient) -> None:
    ranked = get(client, "/api/top", by="comm", cpu=str(SMALL.held_core), **HELD)
    assert ranked[0]["name"] == "kubelet"
    functions = get(client, "/api/top", limit=5, **HELD)
    assert len(functions) == 5
    assert {"self", "total", "module"} <= set(functions[0])


# -- comparing -----------------------------------------------------------------------


def test_what_changed(client: TestClient) -> None:
    found = get(client, "/api/compare", **HELD)
    assert found["baseline"]["to_ms"] == HELD["from_ms"]
    grown = {row["name"]: row for row in found["rows"] if row["flagged"]}
    assert "kubelet" in grown
    assert grown["kubelet"]["status"] in ("grown", "new")


def test_what_changed_as_a_flame_graph(client: TestClient) -> None:
    chosen = {"base_from_ms": FROM_MS, "base_to_ms": FROM_MS + 60_000}
    against: list[dict[str, float]] = [{}, chosen]
    for base in against:
        found = get(client, "/api/compare/flame", **HELD, **base)
        kubelet = next(c for c in found["root"]["children"] if c["name"] == "kubelet")
        assert kubelet["status"] in ("grown", "new")
        assert kubelet["value"] > 2 * kubelet["base"]
        assert kubelet["p"] < 0.01
        assert found["base_total"] > 0
        if base:
            assert found["baseline"]["from_ms"] == pytest.approx(FROM_MS, abs=2000)
            assert found["baseline"]["to_ms"] == FROM_MS + 60_000


def test_the_baseline_is_no_longer_than_what_was_recorded(client: TestClient) -> None:
    window = {"from_ms": FROM_MS + 4000, "to_ms": FROM_MS + 8000}
    for path in ("/api/compare", "/api/compare/flame"):
        baseline = get(client, path, **window)["baseline"]
        assert baseline["to_ms"] == window["from_ms"]
        assert 2000 < baseline["to_ms"] - baseline["from_ms"] <= 4000
        assert baseline["recorded_ms"] <= 4000
    baseline = get(client, "/api/compare", from_ms=FROM_MS - 5000, to_ms=TO_MS)["baseline"]
    assert baseline["to_ms"] - baseline["from_ms"] == baseline["recorded_ms"] == 0


def test_a_window_against_itself_is_the_same(client: TestClient) -> None:
    base = {f"base_{name}": value for name, value in HELD.items()}
    found = get(client, "/api/compare/flame", **HELD, **base)
    assert {child["status"] for child in found["root"]["children"]} == {"same"}
    assert found["base_total"] == found["total"]


def test_half_a_baseline_is_refused(client: TestClient) -> None:
    for base in (
        {"base_from_ms": 1}, {"base_to_ms": 1}, {"base_from_ms": 2, "base_to_ms": 1},
        {"base_from_ms": 0, "base_to_ms": 9e11},
    ):  # fmt: skip
        assert client.get("/api/compare", params={**HELD, **base}).status_code == 400


# -- diagnosis -----------------------------------------------------------------------


def test_every_link_of_a_diagnosis_says_where_to_look(client: TestClient) -> None:
    found = get(client, "/api/diagnosis")
    chain = found["findings"][0]["chains"][0]
    assert chain["root"]["name"] == "ecs.service"
    looks = {link["kind"]: link["look"] for link in chain["links"]}
    assert looks["core"]["view"] == "timeline"
    assert looks["mechanism"] | {"view": "flame", "cpu": str(SMALL.held_core)} == looks["mechanism"]
    assert looks["mechanism"]["marked_frame"] == CULPRIT
    for kind in ("parent", "queue", "source", "why"):
        assert looks[kind]["view"] == "facts"
    assert looks["why"]["row"] == "ecs.service"
    rows = get(client, "/api/facts", at_ms=looks["parent"]["to_ms"])["zombies"]["parents"]
    assert looks["parent"]["row"] in {row["path"] for row in rows}
    for link in chain["links"]:
        look = link["look"]
        assert FROM_MS - 1e6 < look["from_ms"] < look["to_ms"] < TO_MS + 1e6
    addresses = {link["kind"]: link["address"] for link in chain["links"]}
    assert addresses["mechanism"].endswith(f"&search={CULPRIT}")
    assert addresses["why"].endswith("&tab=facts&row=ecs.service")
    chosen = {name: looks["mechanism"][name] for name in ("from_ms", "to_ms", "cpu", "mode")}
    assert CULPRIT in names_of(get(client, "/api/flame", **chosen)["root"])
    assert abs(found["findings"][0]["symptom"]["time_ms"] - RESET_MS) < 60_000


def test_a_diagnosis_tells_its_progress(client: TestClient) -> None:
    answer = client.get("/api/diagnosis", headers={"accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\n") for block in answer.text.split("\n\n") if block]
    assert events[-1][0] == "event: result"
    told = json.loads(events[-1][1].removeprefix("data: "))
    assert told == get(client, "/api/diagnosis")


def test_reports(client: TestClient) -> None:
    html = client.get("/api/report.html", params=HELD)
    assert html.headers["content-type"].startswith("text/html")
    assert "attachment" in html.headers["content-disposition"]
    assert "<svg" in html.text
    text = client.get("/api/report.md", params=HELD)
    assert text.text.startswith("# Diagnosis")


# -- facts and quality ---------------------------------------------------------------


def test_facts(client: TestClient) -> None:
    found = get(client, "/api/facts", at_ms=RESET_MS)
    assert [nic["name"] for nic in found["network"]["nics"]] == ["eth0"]
    queues = {queue["queue"]: queue for queue in found["network"]["queues"]}
    assert queues[SMALL.queue]["cpus"] == [SMALL.held_core]
    assert "ecs.service" in {unit["unit"] for unit in found["units"]}
    assert {each["name"] for each in found["containers"]} >= {"ecs-agent"}
    zombies = found["zombies"]
    assert zombies["tracked"] == zombies["visible"] + zombies["dying"]
    assert zombies["parents"][0]["path"] == "/ecs"


def test_quality(client: TestClient) -> None:
    found = get(client, "/api/quality", **HELD)
    assert found["samples"] == get(client, "/api/flame", **HELD)["total"]
    assert found["lost"] == 0


# -- downloads -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for each in SAMPLE_FORMATS for name in each.names])
def test_exports(client: TestClient, name: str) -> None:
    answer = client.get(f"/api/export/{name}", params={"cpu": str(SMALL.held_core), **HELD})
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content) > 100
    assert answer.headers["content-disposition"].startswith('attachment; filename="ip-10-0-39-1-')
    if name == "folded":
        assert CULPRIT in answer.text
    elif name == "pprof":
        assert answer.content[:2] == b"\x1f\x8b"
    else:
        json.loads(answer.content)


def test_a_bundle_opens_here_again(client: TestClient, tmp_path: Path) -> None:
    from tests.web.conftest import open_client

    path = tmp_path / "incident.nodescope"
    path.write_bytes(client.get("/api/bundle", params=HELD).content)
    with open_client(path) as other:
        found = get(other, "/api/flame", **HELD)
        assert found["total"] == get(client, "/api/flame", **HELD)["total"]


def test_no_file_is_left_behind(client: TestClient, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client.get("/api/export/folded", params=HELD)
    client.get("/api/bundle", params=HELD)
    client.get("/api/bundle", params={"from_ms": 0, "to_ms": 1})
    assert list(tmp_path.iterdir()) == []


# -- caching, errors -----------------------------------------------------------------


def test_an_answer_that_is_known_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/api/flame", params=HELD)
    again = client.get("/api/flame", params=HELD, headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert not again.content
    other = client.get("/api/flame", params={**HELD, "cpu": "1"})
    assert other.headers["etag"] != first.headers["etag"]


def test_unknown_paths_and_parameters(client: TestClient) -> None:
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/nothing").json()["error"]
    answer = client.get("/api/cores", params={"wrong": "1"})
    assert answer.status_code == 400
    assert "wrong" in answer.json()["error"]
    assert "columns" in answer.json()["hint"]


def test_a_window_that_ends_before_it_starts(client: TestClient) -> None:
    answer = client.get("/api/cores", params={"from_ms": 2, "to_ms": 1})
    assert answer.status_code == 400
    assert "before it starts" in answer.json()["error"]


def test_deepest_is_what_json_can_nest() -> None:
    node: dict[str, Any] = {"children": []}
    for _ in range(DEEPEST):
        node = {"children": [node]}
    assert json.loads(json.dumps(node))

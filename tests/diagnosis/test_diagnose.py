"""The synthetic story in little: solved whole, and as far as it goes with a witness gone."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodescope.archive.reader import Archive
from nodescope.cli.main import main
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.diagnose import _choose
from nodescope.diagnosis.finding import Diagnosis, Symptom
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.diagnosis.report.summary import hint_of
from nodescope.diagnosis.report.text import render_markdown, render_text
from nodescope.diagnosis.symptoms.incidents import Incident
from nodescope.lab.score import judge, solve
from nodescope.lab.synthetic import Shape, story_truth, write_story
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import TimeExtent, Window
from nodescope.records.action_words import describe_action
from nodescope.records.event import Event

SHAPE = Shape().small()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


def without(path: Path, target: Path, *tables: str) -> Path:
    """The same recording without some tables, as if nobody had recorded them."""
    shutil.copytree(path, target)
    for folder in (target / "segments").iterdir():
        description = json.loads((folder / "segment.json").read_text())
        for table in tables:
            description["tables"].pop(table, None)
            (folder / f"{table}.parquet").unlink(missing_ok=True)
        (folder / "segment.json").write_text(json.dumps(description))
    return target


def kinds(diagnosis: Diagnosis) -> list[str]:
    return [link.kind for link in diagnosis.findings[0].chains[0].links]


def test_the_truth_that_the_script_leaves_is_found(story: Path) -> None:
    assert judge(story_truth(SHAPE), solve(story)).right


def test_the_story_is_solved_to_the_unit(story: Path) -> None:
    found = solve(story)
    (finding,) = found.findings
    chain = finding.chains[0]
    assert (chain.root.kind, chain.root.name) == ("unit", "ecs.service")
    assert chain.mechanism == "memcg_walk_by_read"
    assert kinds(found) == [
        "job", "event", "queue", "core", "task", "mechanism", "state", "parent", "source", "why",
    ]  # fmt: skip
    said = " ".join(link.statement for link in chain.links)
    assert "kubelet" in said
    assert "core 3 " in said
    assert "queue 1 of eth0" in said
    assert "ecs-agent" in said
    assert "68,4" in said
    assert "48 were removed there" in said
    assert "47 of them not released after 15 s" in said  # the other one not 15 s ago
    assert "ended 48 times in the 16m 40s before (exit 1)" in said
    assert "enabled by the image's preset" in said
    assert "nothing but a default asks for it" in said
    # The unit's own word for it, not a name that is alike.
    assert "which runs ecs-agent (its journal names the container's id" in said
    assert chain.arithmetic is not None
    assert chain.confidence > 0.7
    assert [each.what for each in found.missing] == ["conditions"]  # the story has no limits
    assert any("page faults" in each.statement for each in finding.ruled_out)
    assert all("ruled out because " in each.statement for each in finding.ruled_out)
    assert "0 of the 165 windows recorded before were as extreme" in said
    assert finding.recurring == []  # once


def test_what_all_times_share_is_told(tmp_path: Path) -> None:
    write_story(tmp_path / "a", replace(SHAPE, resets=(300, 650, 1000)))
    (finding,) = solve(tmp_path / "a").findings
    assert len(finding.repeats) == 2
    shared = " ".join(finding.recurring)
    assert "kernel time of the busiest core stands out" in shared
    assert "softnet processed, being low, stands out" in shared
    assert "memory pgfault" not in shared
    assert "metrics were looked at" in shared


def test_a_healthy_node_has_no_finding(tmp_path: Path) -> None:
    write_story(tmp_path / "a", replace(SHAPE, healthy=True))
    assert solve(tmp_path / "a").findings == []


def test_without_a_kernel_log_the_held_core_is_found(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "kernel_log", "events"))
    (finding,) = found.findings
    assert finding.symptom.kind == "core_held"
    assert finding.chains[0].mechanism == "memcg_walk_by_read"
    # Containers are a table of their own: their churn is still seen, but not who runs them.
    root = finding.chains[0].root
    assert (root.kind, root.name) == ("container", "ecs-agent")
    assert "perhaps run by ecs.service (by its name)" in finding.chains[0].links[-1].statement


def test_without_what_the_unit_says_of_it_the_container_is_the_root(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Case.events_of

    def silent(case: Case, *kinds: str, within: Window | None = None) -> list[Event]:
        return [each for each in told(case, *kinds, within=within) if "logs" not in each.kind]

    monkeypatch.setattr(Case, "events_of", silent)
    (finding,) = solve(story).findings
    assert finding.chains[0].root.name == "ecs-agent"
    assert [link.kind for link in finding.chains[0].links][-1] == "source"


def test_without_samples_nobody_is_blamed(story: Path, tmp_path: Path) -> None:
    gone = ("samples", "profile", "stacks", "frames", "seconds")
    found = solve(without(story, tmp_path / "a", *gone))
    assert kinds(found)[-1] == "core"
    assert found.findings[0].chains[0].root.name == "cpu3"
    assert any(each.what == "samples" for each in found.missing)
    assert "kubelet" not in render_text(found)


def test_without_zombie_counts_the_mechanism_is_told(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "memory_cgroups", "dying_parents"))
    assert kinds(found)[-1] == "mechanism"
    assert any(each.what == "memory cgroups" for each in found.missing)
    assert "ecs" not in render_text(replace(found, conditions=[]))  # it loops, and is not blamed


def test_without_unit_facts_the_container_is_the_root(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "units"))
    root = found.findings[0].chains[0].root
    assert (root.kind, root.name) == ("container", "ecs-agent")
    assert any(each.what == "units" for each in found.missing)


def test_without_tracepoints_the_parent_is_known_by_what_is_held(
    story: Path, tmp_path: Path
) -> None:
    found = solve(without(story, tmp_path / "a", "cgroup_churn"))
    assert found.findings[0].chains[0].root.name == "ecs.service"
    assert any(each.what == "cgroup_churn" for each in found.missing)


def test_where_nobody_is_known_to_leak_the_advice_is_in_words(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "cgroup_churn", "dying_parents"))
    chain = found.findings[0].chains[0]
    assert chain.root.kind == "state"
    assert describe_action(chain.fixes[0]) == "stop what leaks memory cgroups"
    assert chain.steps == ()


def test_without_queues_the_core_is_tied_by_time_alone(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "nic_queues"))
    assert "queue" not in kinds(found)
    assert "core" in kinds(found)
    assert any(each.what == "NIC queues" for each in found.missing)


def test_without_core_times_only_the_event_is_told(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "cores"))
    assert kinds(found) == ["job", "event"]
    assert any(each.what == "per-core time" for each in found.missing)


def test_silence_names_every_witness_that_is_missing(story: Path, tmp_path: Path) -> None:
    found = solve(without(story, tmp_path / "a", "cores", "events", "kernel_log", "softnet"))
    assert found.findings == []
    whats = ["kernel log", "per-core time", "packet work", "conditions"]
    assert [each.what for each in found.missing] == whats
    assert all(each.consequence and each.advice and not each.show for each in found.missing)
    assert "nothing went wrong" not in render_text(found)


def test_incidents_that_are_not_followed_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nodescope.diagnosis.diagnose.MOST_INCIDENTS", 2)
    path = tmp_path / "a"
    write_story(path, replace(SHAPE, seconds=720, resets=(100, 220, 340, 460, 580)))
    found = solve(path)
    (finding,) = found.findings
    assert (len(finding.repeats), finding.unfollowed) == (1, 3)
    (left,) = [each for each in found.missing if each.what == "3 of 5 incidents"]
    assert "3 × job_failed, from " in left.consequence
    assert "3 more of its kind were not followed" in render_text(found)
    found.archive = path
    hint = hint_of(left, path)
    assert f"    $ {hint}" in render_text(found, 60).splitlines()
    assert diagnosis_document(found)["findings"][0]["unfollowed"] == 3
    monkeypatch.undo()
    main([*shlex.split(hint)[1:], "--json"])
    (others,) = json.loads(capsys.readouterr().out)["findings"]
    assert len(others["repeats"]) == 2


def test_a_frequent_kind_leaves_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodescope.diagnosis.diagnose.MOST_INCIDENTS", 3)
    kinds = ["job_failed"] * 5 + ["nic_reset", "core_held"]
    incidents = [Incident([Symptom(kind, at, "x", "it was so")]) for at, kind in enumerate(kinds)]
    followed, left = _choose(incidents)
    assert [each.first.kind for each in followed] == ["job_failed", "nic_reset", "core_held"]
    assert [each.first.time_ns for each in left] == [1, 2, 3, 4]


def test_a_task_that_was_not_compared_says_so(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodescope.diagnosis.diagnose.IN_FULL", 0)
    (task,) = [x for x in solve(story).findings[0].chains[0].links if x.kind == "task"]
    assert "not compared with the time before" in task.statement


def test_a_core_that_serves_no_queue_is_not_blamed(tmp_path: Path) -> None:
    write_story(tmp_path / "a", replace(SHAPE, queue=99))  # no queue goes to the pegged core
    found = solve(tmp_path / "a")
    nic = next(each for each in found.findings if each.symptom.kind == "job_failed")
    assert [link.kind for link in nic.chains[0].links] == ["job", "event"]
    assert any("serves no queue" in each.statement for each in nic.ruled_out)


def test_the_document_has_the_promised_shape(story: Path) -> None:
    document = diagnosis_document(solve(story))
    (finding,) = document["findings"]
    assert finding["symptom"]["kind"] == "job_failed"
    chain = finding["chains"][0]
    assert {"confidence", "root", "links", "weakest", "refute"} <= chain.keys()
    assert set(chain["links"][0]) == {
        "kind", "subject", "statement", "strength", "show", "view",
    }  # fmt: skip
    assert chain["root"] == {"kind": "unit", "name": "ecs.service"}
    json.dumps(document)


def test_the_command_exits_1_with_findings(
    story: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["diagnose", "--archive", str(story)]) == 1
    out = capsys.readouterr().out
    assert "cause: unit ecs.service" in out
    report = tmp_path / "report.md"
    assert main(["diagnose", "--archive", str(story), "--output", str(report)]) == 1
    assert "**Cause: unit ecs.service**" in report.read_text()
    capsys.readouterr()
    assert main(["diagnose", "--archive", str(story), "--json", "--last", "60s"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    assert {each["kind"] for each in document["conditions"]} >= {"zombies", "container_loop"}


def told(capsys: pytest.CaptureFixture[str], story: Path, *options: str) -> Any:
    main(["diagnose", "--archive", str(story), "--json", *options])
    return json.loads(capsys.readouterr().out)["findings"]


def test_a_moment_sees_what_the_whole_recording_sees(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = told(capsys, story)
    reset = SHAPE.resets[0]
    assert told(capsys, story, "--at", f"+{reset}s") == whole
    assert told(capsys, story, "--at", f"+{reset}s", "--around", "3s") == whole
    # The window begins after the reset and before the job failed on it.
    assert told(capsys, story, "--from", f"+{reset + 2}s") == whole
    assert told(capsys, story, "--at", "+700s") == []


def test_the_moment_is_the_one_given_also_at_the_end_of_a_recording(
    story: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def ask(_: object, window: Window, at_ns: int) -> Diagnosis:
        asked.append(at_ns)
        return Diagnosis(window.from_ns, window.to_ns)

    monkeypatch.setattr("nodescope.diagnosis.diagnose.diagnose", ask)
    assert main(["diagnose", "--archive", str(story), "--at", "+1180s"]) == 0
    assert asked == [TimeExtent(Archive.open(story).segments()).from_ns + 1180 * SECOND_NS]


def test_names_in_a_report_are_never_markup(story: Path) -> None:
    found = solve(story)
    symptom = replace(found.findings[0].symptom, statement="<script>|x`*")
    found.findings[0].symptom = symptom
    text = render_markdown(found)
    assert "<script>" not in text
    assert "\\<script\\>\\|x\\`\\*" in text


def test_times_of_the_story_are_as_told(story: Path) -> None:
    extent = TimeExtent(Archive.open(story).segments())
    length = (extent.to_ns - extent.from_ns) / SECOND_NS
    assert SHAPE.seconds - 2 < length < SHAPE.seconds + 2

"""`zombies --at` and `audit --at`: the node as a recording had it, whatever it is now."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.diagnosis.test_diagnose import SHAPE, without

from nodescope.cli.main import main
from nodescope.lab.synthetic import write_story

AT = f"+{SHAPE.resets[0]}s"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


def ask(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    assert main([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_zombies_as_they_were(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(capsys, "zombies", "--at", AT, "--archive", story, code=1)
    assert (found["tracked"], found["visible"], found["dying"]) == (68_680, 240, 68_440)
    assert found["parents"][0]["path"] == "/ecs"
    assert found["parents"][0]["held"]["shmem"] > 0
    assert (found["verdict"], found["trend"]["source"]) == ("critical", "recording")
    assert found["watch"]["makers"][0]["parent"] == "/ecs"
    earlier = ask(capsys, "zombies", "--at", "+60s", "--archive", story, code=1)
    assert earlier["dying"] < found["dying"]
    assert earlier["at"] < found["at"]


def test_units_as_they_were_with_their_verdict(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("audit", "--at", AT, "--unit", "ecs.service", "--archive", story)
    found = ask(capsys, *asked, code=1)
    (unit,) = found["units"]
    assert (unit["unit"], unit["preset"], unit["successes"]) == ("ecs.service", "enabled", 0)
    (verdict,) = found["findings"]
    assert (verdict["name"], verdict["verdict"]) == ("ecs.service", "hidden_loop")
    assert main([*map(str, asked)]) == 1
    shown = capsys.readouterr().out
    assert "successes 0" in shown
    assert "enabled; preset: enabled" in shown
    assert "hidden_loop" in shown
    assert "kubelet" not in shown
    assert "None" not in shown


def test_an_audit_of_the_past_names_units_and_containers_and_what_was_not_seen(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask(capsys, "audit", "--at", AT, "--archive", story, code=1)
    verdicts = {(each["kind"], each["name"], each["verdict"]) for each in found["findings"]}
    assert ("unit", "ecs.service", "hidden_loop") in verdicts
    assert ("container", "ecs-agent", "looping") in verdicts
    assert found["units"] == []
    assert any("whether they are used" in what for what in found["not_observed"])
    assert main(["audit", "--at", AT, "--archive", str(story)]) == 1
    assert "Not recorded: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit", "--at", AT, "--unit", "no.service"], "nothing was recorded of no.service"),
        (["audit", "--unit", "ecs.service"], "--unit needs --at"),
        (["zombies", "--at", AT, "--watch", "1s"], "look at now"),
        (["zombies", "--at", AT, "--files"], "look at now"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], said: str, story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--archive", str(story)]) == 2
    assert said in capsys.readouterr().err


def test_what_was_not_recorded_is_said(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = ("memory_cgroups", "units", "containers", "events")
    archive = str(without(story, tmp_path / "a", *tables))
    assert main(["zombies", "--at", AT, "--archive", archive]) == 2
    assert "no memory cgroups were recorded" in capsys.readouterr().err
    assert main(["audit", "--at", AT, "--archive", archive]) == 2
    assert "nothing was recorded of units or containers" in capsys.readouterr().err


def test_that_nobody_makes_cgroups_is_not_said_before_it_could_be_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Makers are written every ten seconds: after ten seconds none may have been."""
    bundle = Path(__file__).parents[1] / "diagnosis" / "bundles" / "zombies.bundle"
    assert main(["zombies", "--at", "+10s", "--archive", str(bundle)]) == 1
    shown = capsys.readouterr().out
    assert "Not recorded: who makes cgroups." in shown
    assert "nobody made" not in shown


@pytest.mark.parametrize("command", ["zombies", "audit", "diagnose"])
@pytest.mark.parametrize("at", ["2020-01-01", "+100h"])
def test_a_moment_outside_the_recording_is_refused(
    command: str, at: str, story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 13, point 7: `zombies --at +500s` of a recording of 40 s answered something old."""
    assert main([command, "--at", at, "--archive", str(story)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing was recorded" in said.err
    assert "hint: the recording covers " in said.err


def test_a_time_that_a_view_prints_can_be_pasted_into_every_command(
    story: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13, point 1: `cores` printed UTC without a zone, and `--at` read local time."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    archive = ("--archive", str(story))
    try:
        assert main(["cores", *archive]) == 0
        shown = capsys.readouterr().out.partition("\n")[2]
        printed = re.findall(r"\d\d:\d\d:\d\d\S*", shown)
        assert printed
        assert all(each.strip(",:").endswith("Z") for each in printed)
        at = printed[-1].strip(",:")
        for each in (at, at.removesuffix("Z")):
            for command in ("cores", "top", "zombies", "audit", "diagnose"):
                assert main([command, *archive, "--at", each]) in (0, 1), command
            assert main(["freeze", *archive, "--from", each, "--to", "+1h"]) == 0
            capsys.readouterr()
            assert main(["mark", "x", *archive, "--at", each]) == 0
            assert at.removesuffix("Z") in capsys.readouterr().out
    finally:
        monkeypatch.undo()
        time.tzset()


def test_each_reading_of_zombies_has_its_time_and_none_is_divided_by_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Issue 13, point 2: parents of :08 stood under the time of counts of :38, and were
    divided by them in `diagnose`."""
    bundle = Path("tests/diagnosis/bundles/loop-beside-leak.bundle")
    at = ("--at", "2026-11-17T03:30:45Z", "--archive", str(bundle))
    assert main(["zombies", *at]) == 1
    shown = capsys.readouterr().out
    assert "dying 4,228   (hybrid, memory on cgroup v1, as recorded at" in shown
    assert (
        "parents as recorded at 2026-11-17T03:30:08.144Z, 29.9 s before the counts above, "
        "so the sums may differ\n" in shown
    )
    assert "≈4,007  /nodescope-lab-19987-systemd/system.slice" in shown
    found = ask(capsys, "zombies", *at, code=1)
    assert found["at"] == "2026-11-17T03:30:38.041Z"
    assert {each["at"] for each in found["parents"]} == {"2026-11-17T03:30:08.144Z"}
    assert main(["diagnose", "--archive", str(bundle)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "≈4,007 dying cgroups are below" in said
    assert "system.slice (read at 03:30:08Z)" in said
    assert "4,228 were removed and are still walked (read at 03:30:38Z)" in said
    assert "of 4,228 dying" not in said

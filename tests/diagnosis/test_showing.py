"""Every piece of evidence is shown by the command it names, on the recording it is from."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from tests.diagnosis.test_diagnose import SHAPE

from nodescope.cli.main import build_parser, main
from nodescope.diagnosis.finding import RuledOut
from nodescope.diagnosis.links.states import _SUSPECTS
from nodescope.diagnosis.rules.suspects import with_show
from nodescope.diagnosis.showing import on_archive
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.lab.synthetic import write_story

BUNDLES = Path(__file__).parent / "bundles"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "it's an archive"
    write_story(path, SHAPE)
    return path


def commands(archive: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that a diagnosis says to show something, each once."""
    capsys.readouterr()
    assert main(["diagnose", "--archive", str(archive), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    chains = [chain for finding in found for chain in finding["chains"]]
    shown = [link["show"] for chain in chains for link in chain["links"]]
    shown += [each["show"] for finding in found for each in finding["ruled_out"]]
    return list(dict.fromkeys(shown))


def shows_something(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    program, *arguments = shlex.split(command)
    assert program == "nodescope"
    assert main(arguments) == 0, command
    shown = capsys.readouterr().out
    assert shown.strip() not in ("", "no events", "no samples"), command
    assert arguments[0] != "export" or shown.count("\n") > 1, command  # more than a head
    return shown


def test_every_command_of_the_story_shows_it(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {command: shows_something(command, capsys) for command in commands(story, capsys)}
    assert len(shown) >= 9
    everything = "\n".join(shown.values())
    for evidence in ("raysubmit_0", "Trigger reset", "kubelet", "mem_cgroup_nr_lru_pages",
                     "68,440", "/ecs", "ecs-agent", "ecs.service", "pgfault"):  # fmt: skip
        assert evidence in everything


@pytest.mark.parametrize("name", ["zombie-agent", "starved-nic", "reclaim"])
def test_every_command_of_a_real_run_shows_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = commands(BUNDLES / f"{name}.bundle", capsys)
    assert found
    for command in found:
        shows_something(command, capsys)


@pytest.mark.parametrize("kind", ["txt", "md", "html"])
def test_reports_name_the_recording(
    kind: str, story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "archive"
    shutil.copytree(story, plain)
    target = tmp_path / f"report.{kind}"
    assert main(["diagnose", "--archive", str(plain), "--output", str(target)]) == 1
    report = target.read_text()
    for command in commands(plain, capsys):
        assert command.endswith(f" --archive {plain}")
        # What a cause is not is short on a terminal.
        assert command in report or (kind == "txt" and " export " in command)


def test_a_recording_is_found_from_any_folder(
    story: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(story.parent)
    for command in commands(Path(story.name), capsys):
        assert shlex.split(command)[-1] == str(story)


def test_what_looks_at_the_machine_names_no_recording() -> None:
    archive = Path("/a b")
    assert on_archive("nodescope doctor", archive) == "nodescope doctor"
    assert on_archive("nodescope zombies --parents", archive) == "nodescope zombies --parents"
    assert on_archive("see `nodescope doctor`", archive) == "see `nodescope doctor`"
    assert on_archive("nodescope top", archive) == "nodescope top --archive '/a b'"
    moment = "nodescope zombies --at 2026-11-16T12:00:00Z"
    assert on_archive(moment, archive) == f"{moment} --archive '/a b'"


@pytest.mark.parametrize(
    "name",
    [*_SUSPECTS.values(), "CPU throttling", "zombie memory cgroups", "core 3", "file_io", "?"],
)
def test_every_suspect_has_a_command(name: str) -> None:
    held = PeggedCore(3, 10**18, 10**18 + 6 * 10**9, 1.0)
    known, unknown = (with_show(RuledOut(name, "it is not"), each, 10**18) for each in (held, None))
    for command in (known.show, unknown.show):
        _, *arguments = shlex.split(command)
        build_parser(arguments).parse_args(arguments)
        assert ("--table memory" in command) == (name in _SUSPECTS.values())
    assert ("--cpu 3" in known.show) == (name == "file_io")

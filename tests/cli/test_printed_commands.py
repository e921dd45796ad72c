"""Every command that is printed runs as printed: on the default archive, elsewhere, on a bundle.

Commands of ours that read a recording are run. What looks at the machine, and what would
change it, is only parsed: it must be a command with options that exist.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.cli.conftest import Nodescope
from tests.diagnosis.test_diagnose import SHAPE, without
from tests.printed_commands import SYSTEM, in_html, in_json, in_markdown, in_text

from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.cli import options
from nodescope.cli.main import build_parser
from nodescope.diagnosis.finding import RuledOut
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.diagnosis.rules.suspects import load_suspects, with_show
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.judgement.zombies import advise
from nodescope.lab.synthetic import write_story
from nodescope.records.action_words import action_command
from nodescope.records.view_forms import render_command

BUNDLES = Path(__file__).parent.parent / "diagnosis" / "bundles"
INCIDENTS = ["zombie-agent", "starved-nic", "reclaim"]
LIVE = {"doctor", "zombies", "audit"}  # without --at: of the machine
NOTHING = ("", "no events")

Place = Callable[[Path], Path]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Make a recording the one that is read by default."""

    def place(recording: Path) -> Path:
        monkeypatch.setattr(options, "DEFAULT_ARCHIVE", recording)
        return recording

    monkeypatch.delenv("NODESCOPE_ARCHIVE", raising=False)
    return place


def every_command(nodescope: Nodescope, folder: Path, *archive: str | Path) -> list[str]:
    """Return what all forms of a report print, and what other commands on it do, each once."""
    found = in_text(nodescope("diagnose", *archive).out)
    found += in_json(nodescope("diagnose", "--json", *archive).out)
    for suffix, read in ((".md", in_markdown), (".html", in_html), (".txt", in_text)):
        report = folder / f"report{suffix}"
        nodescope("diagnose", "--output", report, *archive)
        found += read(report.read_text())
    for command in ("events", "status", "quality", "network"):
        result = nodescope(command, *archive)
        found += in_text(result.err)
        # What was recorded is anybody's text; only what we say of it is ours.
        found += in_text(result.out) if command == "network" else []
    return list(dict.fromkeys(found))


def run_all(commands: Iterable[str], nodescope: Nodescope) -> dict[str, str]:
    """Run those that read a recording and return what each shows; parse the others."""
    shown = {}
    for command in commands:
        program, *arguments = shlex.split(command)
        if program != "nodescope":
            assert program in SYSTEM, command
            continue
        if arguments[0] in LIVE and "--at" not in arguments:
            assert "--archive" not in arguments, command
            build_parser(arguments).parse_args(arguments)
            continue
        result = nodescope(*arguments)
        assert result.code in (0, 1), f"{command}\n{result.err}"
        assert result.out.strip() not in NOTHING, command
        assert arguments[0] != "export" or result.out.count("\n") > 1, command  # more than a head
        shown[command] = result.out
    return shown


# -- the three places -----------------------------------------------------------------


def test_on_the_default_archive(
    story: Path, default: Place, nodescope: Nodescope, tmp_path: Path
) -> None:
    default(story)
    commands = every_command(nodescope, tmp_path)
    assert not [command for command in commands if "--archive" in command]
    shown = run_all(commands, nodescope)
    assert len(shown) >= 11
    everything = "\n".join(shown.values())
    for evidence in ("raysubmit_0", "Trigger reset", "kubelet", "mem_cgroup_nr_lru_pages",
                     "68,440", "/ecs", "ecs-agent", "ecs.service", "pgfault"):  # fmt: skip
        assert evidence in everything


@pytest.mark.parametrize("name", INCIDENTS)
def test_on_a_bundle_that_is_the_default(
    name: str, default: Place, nodescope: Nodescope, tmp_path: Path
) -> None:
    default(BUNDLES / f"{name}.bundle")
    assert run_all(every_command(nodescope, tmp_path), nodescope)


def test_on_a_folder_elsewhere(
    story: Path, nodescope: Nodescope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "it's an archive"
    shutil.copytree(story, elsewhere)
    monkeypatch.chdir(tmp_path)
    commands = every_command(nodescope, tmp_path, "--archive", elsewhere.name)
    monkeypatch.chdir("/")  # a command is found from any folder
    shown = run_all(commands, nodescope)
    assert len(shown) >= 11
    assert all(shlex.split(command)[-2:] == ["--archive", str(elsewhere)] for command in shown)


def test_the_environment_is_not_what_others_have(
    story: Path, nodescope: Nodescope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODESCOPE_ARCHIVE", str(story))
    commands = every_command(nodescope, tmp_path)
    monkeypatch.delenv("NODESCOPE_ARCHIVE")
    assert run_all(commands, nodescope)


def test_the_default_is_named_where_the_environment_says_otherwise(
    story: Path, default: Place, nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    default(story)
    monkeypatch.setenv("NODESCOPE_ARCHIVE", "/nowhere")
    found = in_text(nodescope("diagnose", "--archive", story).out)
    assert run_all(found, nodescope)


@pytest.mark.parametrize("path", sorted(BUNDLES.glob("*.bundle")), ids=lambda path: path.stem)
def test_on_every_committed_bundle(path: Path, nodescope: Nodescope, tmp_path: Path) -> None:
    commands = every_command(nodescope, tmp_path, "--archive", path)
    assert run_all(commands, nodescope) or path.stem.endswith("-healthy") or not commands


def test_on_a_bundle_with_a_blank_and_a_quote(
    story: Path, nodescope: Nodescope, tmp_path: Path
) -> None:
    bundle = tmp_path / "it's a bundle.nodescope"
    archive = Archive.open(story)
    segments = archive.segments()
    write_bundle(archive, bundle, segments[0].wall_from_ns, segments[-1].wall_to_ns, 1)
    assert len(run_all(every_command(nodescope, tmp_path, "--archive", bundle), nodescope)) >= 11


# -- where something is missing ---------------------------------------------------------


@pytest.mark.parametrize(
    "tables",
    [
        ("cores",),
        ("samples", "profile", "stacks"),
        ("cgroup_churn", "dying_parents"),
        ("nic_queues", "units"),
        ("memory_cgroups",),
        ("cores", "events", "kernel_log", "softnet"),
    ],
)
def test_hints_of_what_is_missing(
    tables: tuple[str, ...], story: Path, nodescope: Nodescope, tmp_path: Path
) -> None:
    poor = without(story, tmp_path / "it's poor", *tables)
    commands = every_command(nodescope, tmp_path, "--archive", poor)
    assert commands
    run_all(commands, nodescope)


def test_hints_of_errors(story: Path, nodescope: Nodescope, tmp_path: Path) -> None:
    poor = without(story, tmp_path / "it's poor", "units", "memory_cgroups", "containers")
    empty = without(story, tmp_path / "it's empty")
    shutil.rmtree(empty / "segments")
    (empty / "segments").mkdir()
    bundle = shutil.copy(BUNDLES / "busy-healthy.bundle", tmp_path / "it's a bundle")
    asked: list[list[str | Path]] = [
        ["zombies", "--at", "+5s", "--archive", poor],
        ["audit", "--at", "+5s", "--archive", poor],
        ["top", "--archive", empty],
        ["export", "bundle", "--archive", empty, "--output", tmp_path / "out"],
        ["zombies", "--at", "+5s", "--archive", empty],
        ["import", bundle, "--archive", tmp_path / "imported"],
        ["freeze", "--to", "now", "--list", "--archive", story],
        ["freeze"],
        [],
    ]
    for arguments in asked:
        failed = nodescope(*arguments)
        assert failed.code == 2
        (command,) = in_text(failed.err.partition("hint: ")[2])
        program, *words = shlex.split(command)
        assert program == "nodescope"
        if words[-1] == "--help":
            with contextlib.suppress(SystemExit):
                nodescope(*words)
        elif words != ["doctor"]:
            assert nodescope(*words).code in (0, 1), command


# -- every rule -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [*load_suspects(), "core 3", "file_io", "?"],
)
def test_every_suspect_is_shown_not_to_be_it(name: str, story: Path, nodescope: Nodescope) -> None:
    from_ns = Archive.open(story).segments()[1].wall_from_ns
    held = PeggedCore(3, from_ns, from_ns + 6 * 10**9, 1.0)
    for core in (held, None):
        view = with_show(RuledOut(name, "it is not"), core, held.to_ns).show
        assert view is not None
        assert (view.table == "memory") == bool(
            name in load_suspects() and load_suspects()[name].counters
        )
        assert nodescope(*shlex.split(render_command(view, story))[1:]).code in (0, 1)


def test_every_mechanism_is_checked_and_helped_by_commands_that_run(
    story: Path, nodescope: Nodescope
) -> None:
    commands = set()
    for mechanism in load_mechanisms():
        commands |= {render_command(view, story) for view in mechanism.check}
        actions = [action_command(action, story) for action in mechanism.fix]
        commands |= {command for command in actions if command is not None}
    for command in sorted(commands):
        program, *words = shlex.split(command)
        if program != "nodescope" or "--archive" not in words:
            run_all([command], nodescope)
        else:  # of some mechanisms the story has nothing to show
            assert nodescope(*words).code in (0, 1), command


def test_what_frees_zombies_is_commands() -> None:
    held = {"shmem": 10, "file": 10, "swap": 10}
    found = advise([("/it's a.slice", held, "/sys/fs/cgroup/it's a.slice")], "memory.reclaim")
    commands = [each.command for each in found if each.command]
    assert [command for command in commands if command.startswith("nodescope ")] == [
        "nodescope zombies --watch 60s", "nodescope zombies --files",
    ]  # fmt: skip
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "nodescope":
            build_parser(arguments).parse_args(arguments)
        else:
            assert program in SYSTEM

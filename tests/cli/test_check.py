"""`nodescope check`: one line, a fixed reason, an exit code; and no answer without sight."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from nodescope.cli.main import main
from nodescope.judgement.health import (
    MAX_AGE_NS,
    MAX_LINE,
    NETWORK_KINDS,
    Health,
    judge_recording,
)
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.node_tables import MemoryCgroupsRow, SoftnetRow
from nodescope.records.recorder_tables import EventRow, Gap, HeartbeatRow
from nodescope.records.table import Row

_BUNDLES = Path(__file__).parents[1] / "diagnosis/bundles"
NOW = 2 * HOUR_NS


def _recording(*rows: Row) -> Recording:
    begun = (HeartbeatRow(time_ns=0, wall_ns=0), HeartbeatRow(time_ns=NOW, wall_ns=NOW))
    return recording_of([*begun, *rows])


def _check(name: str, *rows: Row, now_ns: int = NOW, last_ns: int = 10 * MINUTE_NS) -> Health:
    return judge_recording(name, _recording(*rows), now_ns, last_ns)


@pytest.mark.parametrize(
    ("bundle", "check", "code", "reason"),
    [
        ("zombie-agent", "zombies", 1, "ZombiesMany"),
        ("zombie-agent", "loops", 1, "UnitLoops"),
        ("zombie-agent", "cores", 1, "CorePegged"),
        ("zombie-agent", "network", 1, "NicReset"),
        ("container-loop", "loops", 1, "ContainerLoops"),
        ("zombie-agent-healthy", "zombies", 0, "ZombiesFew"),
        ("zombie-agent-healthy", "loops", 0, "NoLoops"),
        ("zombie-agent-healthy", "cores", 0, "NoPeggedCore"),
    ],
)
def test_recorded_incidents(
    bundle: str, check: str, code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(_BUNDLES / f"{bundle}.bundle")
    options = ["--archive", path, "--last", "10m", "--max-age", "100000d"]
    assert main(["check", check, *options]) == code
    line = capsys.readouterr().out.removesuffix("\n")
    assert line.startswith(f"{reason}: ")
    assert len(line.encode()) <= MAX_LINE
    assert main(["check", check, *options, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["line"] == line
    assert document["source"] == "recording"


def test_a_recorder_that_stopped_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(_BUNDLES / "zombie-agent.bundle")
    for check in ("zombies", "loops", "cores", "network"):
        assert main(["check", check, "--archive", path]) == 2
        assert capsys.readouterr().out.startswith("RecorderStopped: last reading ")
        assert main(["check", check, "--archive", path, "--nagios"]) == 3
        capsys.readouterr()


def test_an_archive_that_cannot_be_read_is_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.bundle"
    shutil.copy(_BUNDLES / "busy.bundle", broken)
    broken.write_bytes(broken.read_bytes()[:1000])
    assert main(["check", "zombies", "--archive", str(broken)]) == 2
    assert capsys.readouterr().out.startswith("RecordingUnreadable: ")


def _zombies(dying: int, ago_ns: int = 0) -> MemoryCgroupsRow:
    return MemoryCgroupsRow(time_ns=NOW - ago_ns, version="v2", tracked=dying + 100, dying=dying)


def test_zombies_clear_when_they_are_over() -> None:
    many = _zombies(20_000, 5 * MINUTE_NS)
    assert _check("zombies", many).status == "critical"
    assert _check("zombies", many, _zombies(10)).status == "ok"
    assert _check("zombies").status == "unknown"


def test_network_clears_when_it_is_over_and_needs_sight() -> None:
    reset = EventRow(time_ns=NOW - 5 * MINUTE_NS, kind="nic_reset", subject="eth0", message="",
                     details="{}")  # fmt: skip
    found = _check("network", reset)
    assert (found.status, found.reason) == ("critical", "NicReset")
    assert found.line == "NicReset: eth0, 1 in the last 10m"
    assert _check("network", reset, last_ns=MINUTE_NS).status == "unknown"  # nobody looked
    assert set(NETWORK_KINDS) <= set(EVENT_KINDS)


def test_an_all_clear_says_how_much_of_the_time_was_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """13 s of a healthy node are no all-clear for a minute."""
    path = str(_BUNDLES / "zombie-agent-healthy.bundle")
    options = ["--archive", path, "--max-age", "100000h"]
    assert main(["check", "cores", *options]) == 0
    assert re.search(r"none pegged in \d+ s recorded of the last 1m$", capsys.readouterr().out)
    assert main(["check", "cores", *options, "--last", "5s"]) == 0
    assert capsys.readouterr().out.endswith("none pegged in the last 5 s\n")


def test_an_old_reading_neither_raises_nor_clears() -> None:
    rows = (_zombies(20_000),)
    assert _check("zombies", *rows, now_ns=NOW + MAX_AGE_NS).status == "critical"
    later = _check("zombies", *rows, now_ns=NOW + MAX_AGE_NS + 2 * SECOND_NS)
    assert (later.status, later.reason) == ("unknown", "RecorderStopped")


def test_a_gap_at_the_end_is_lost_sight() -> None:
    softnet = SoftnetRow(time_ns=NOW, cpu=0, processed=1, dropped=0, squeezed=0)
    ten_ns = 10 * MINUTE_NS
    gap = Gap(from_ns=NOW - ten_ns, to_ns=NOW + 1, source="memory_cgroups", reason="denied")
    assert _check("zombies", _zombies(10, ten_ns), gap).reason == "NotRecorded"
    assert _check("network", softnet).reason == "NotRecorded"  # not the kernel's log


def test_a_line_stays_short_and_plain() -> None:
    long = Health("loops", "warning", "UnitLoops", "ä\n" + "x" * 200)
    assert len(long.line.encode()) == MAX_LINE
    assert long.line.startswith("UnitLoops: ? x")


def test_without_a_recording_it_looks_at_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodescope.cli.options.DEFAULT_ARCHIVE", tmp_path / "none")
    monkeypatch.delenv("NODESCOPE_ARCHIVE", raising=False)
    assert main(["check", "cores", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["source"] == "node"
    assert main(["check", "network"]) == 2
    assert capsys.readouterr().out.startswith("NoRecording: ")

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.conftest import LATER, SAMPLES, START, HandClock, Sample, write_archive

from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS

Nodescope = Callable[..., Any]
UNNAMED = [
    Sample(10.0, 0, 10, "app", "main;+0x1f00"),
    Sample(10.1, 0, 10, "app", "main;" + ";".join(f"f{at}" for at in range(127))),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    write_archive(tmp_path / "archive", [[*SAMPLES, *UNNAMED], LATER])
    return tmp_path / "archive"


def test_frames_and_stacks_are_counted_by_their_samples(
    nodescope: Nodescope, recording: Path
) -> None:
    document = json.loads(nodescope("quality", "--json", "--archive", recording).out)
    assert document["samples"] == 10
    frames = sum(len(sample.frames) for sample in [*SAMPLES, *LATER, *UNNAMED])
    assert document["user_frames"] + document["kernel_frames"] == frames
    assert document["kernel_frames"] == 1 + 2 + 2 + 2
    assert (document["user_unresolved"], document["kernel_unresolved"]) == (1, 0)
    assert document["truncated_stacks"] == 1
    assert document["truncated_share"] == pytest.approx(0.1)
    assert document["idle_share"] is None
    part = nodescope("quality", "--json", "--archive", recording, "--from", "+0s", "--to", "+2s")
    assert json.loads(part.out)["samples"] == 4


def test_a_person_reads_one_fact_a_line(nodescope: Nodescope, recording: Path) -> None:
    out = nodescope("quality", "--archive", recording).out
    assert "samples     10, 0 lost (0.00 %)" in out
    assert "cut off     1 stacks at the kernel's limit (10.00 %)" in out
    assert "clock       never set" in out
    assert "gaps        0" in out


def test_folded_stacks_are_told_and_shown_as_a_frame_of_their_own(
    nodescope: Nodescope, tmp_path: Path
) -> None:
    folded = Sample(10.0, 0, 10, "app", "main;run;[folded];leaf")
    write_archive(tmp_path / "archive", [[folded, Sample(10.1, 0, 10, "app", "main;run;leaf")]])
    to = ("--archive", tmp_path / "archive")
    assert "folded      1 stacks without their middle (50.00 %)" in nodescope("quality", *to).out
    document = json.loads(nodescope("quality", "--json", *to).out)
    assert (document["folded_stacks"], document["folded_share"]) == (1, 0.5)
    assert document["user_unresolved"] == 0
    assert "[folded]" in nodescope("flame", *to).out
    found = json.loads(nodescope("quality", "--frame", "^leaf$", "--json", *to).out)
    assert found["samples"] == 2


def beat(
    writer: ArchiveWriter, clock: HandClock, wall_ns: int, lost: int, unresolved: str | None = None
) -> None:
    row = {
        "time_ns": clock.now, "wall_ns": wall_ns, "cpu_ns": 0, "rss_bytes": 1 << 20,
        "written_bytes": 0, "samples": 0, "lost": lost, "late_ns": 5_000_000, "frequency_hz": 97,
        "unresolved": unresolved,
    }  # fmt: skip
    writer.append("heartbeats", {name: [value] for name, value in row.items()})


def test_losses_steps_throttling_and_gaps(nodescope: Nodescope, tmp_path: Path) -> None:
    clock = HandClock()
    with ArchiveWriter.open(tmp_path, node={"name": "n"}, clock=clock, tick_ns=1000) as writer:
        beat(writer, clock, clock.wall_ns(), 0)
        writer.append(
            "gaps",
            dict(from_ns=[clock.now], to_ns=[clock.now + SECOND_NS], source=["all"], cpu=[None],
                 lost=[None], reason=["disk full"]),
        )  # fmt: skip
        writer.append(
            "events",
            dict(time_ns=[clock.now + 1], kind=["throttled"], subject=["cpu3"], message=["m"]),
        )
        for second, idle in ((0, 0), (1, 75)):
            names = ["user", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"]
            ticks = {name: [0] for name in names}
            writer.append(
                "cores",
                {"cpu": [0], "time_ns": [clock.now + second * SECOND_NS], "idle": [idle],
                 "system": [25 * second], **ticks},
            )  # fmt: skip
        flush_at = clock.now
        clock.now += 10 * SECOND_NS
        beat(writer, clock, clock.wall_ns() + 3600 * SECOND_NS, 7)
        clock.now = flush_at
        writer.flush()
    document = json.loads(nodescope("quality", "--json", "--archive", tmp_path).out)
    assert (document["lost"], document["throttled"]) == (7, 1)
    assert document["late_ns"] == 5_000_000
    (step,) = document["clock_steps"]
    assert step["by_ns"] == 3600 * SECOND_NS
    (gap,) = document["gaps"]
    assert (gap["reason"], gap["from_ns"]) == ("disk full", START)
    assert document["unseen_ns"] == SECOND_NS
    assert document["idle_share"] == pytest.approx(0.75)
    out = nodescope("quality", "--archive", tmp_path).out
    assert "set forward by 1h at" in out
    assert "idle        75.0 % of the cores' time" in out


def record_run(root: Path, clock: HandClock, *said: str | None) -> None:
    """A run of the recorder, a segment for each heartbeat."""
    with ArchiveWriter.open(root, node={"name": "n"}, clock=clock, tick_ns=1000) as writer:
        for text in said:
            clock.now += SECOND_NS
            beat(writer, clock, clock.wall_ns(), 0, text)
            writer.seal_segment()


def test_why_places_have_no_name_is_counted_once_per_run(
    nodescope: Nodescope, tmp_path: Path
) -> None:
    clock = HandClock()
    # A recorder's counts only grow: the last of a run holds all before it.
    record_run(tmp_path, clock, '{"no symbols": 3}', '{"no symbols": 800, "process gone": 2}')
    record_run(tmp_path, clock, "{}", '{"no symbols": 40}')
    clock.now += SECOND_NS
    record_run(tmp_path, clock, '{"no symbols": 500}', None)
    document = json.loads(nodescope("quality", "--json", "--archive", tmp_path).out)
    assert document["unresolved_reasons"] == {"no symbols": 1340, "process gone": 2}
    out = nodescope("quality", "--archive", tmp_path).out
    assert "unnamed     no symbols 1,340, process gone 2 (places, since" in out


def test_reasons_are_not_invented(nodescope: Nodescope, tmp_path: Path, recording: Path) -> None:
    """An older recorder said none; and whoever wrote an archive may have written anything."""
    document = json.loads(nodescope("quality", "--json", "--archive", recording).out)
    assert document["unresolved_reasons"] is None
    hostile = ["[" * 5000, "[1]", '{"denied": 1, "malformed": -1, "absent": "x", "deleted": true}']
    for number, text in enumerate(hostile):
        clock = HandClock()
        record_run(tmp_path / str(number), clock, text)
        shown = nodescope("quality", "--json", "--archive", tmp_path / str(number))
        expected = {"denied": 1} if number == 2 else {}
        assert json.loads(shown.out)["unresolved_reasons"] == expected
    record_run(tmp_path / "screen", HandClock(), json.dumps({"\x1b[2J": 7}))
    assert "\\x1b[2J 7" in nodescope("quality", "--archive", tmp_path / "screen").out

from __future__ import annotations

from pathlib import Path

from tests.recorder.observers.archived import BOOT, keep

from nodescope.ingest.observation import Observation
from nodescope.quantities import MINUTE_NS
from nodescope.recorder.already_recorded import read_told_loops, read_told_walk, read_told_zombies
from nodescope.records.event import Event


def _events(kind: str, unit: str, *times_ns: int) -> Observation:
    return Observation(events=[Event(time_ns, kind, unit, "again") for time_ns in times_ns])


def test_units_that_looped_when_the_recorder_before_ended(tmp_path: Path) -> None:
    keep(tmp_path, _events("unit_loop", "old.service", MINUTE_NS), MINUTE_NS)
    keep(tmp_path, _events("unit_loop", "new.service", 55 * MINUTE_NS), 55 * MINUTE_NS)
    often = _events("unit_restart", "often.service", *(n * MINUTE_NS for n in (40, 56, 57, 58)))
    keep(tmp_path, often, 58 * MINUTE_NS)
    keep(
        tmp_path,
        _events("unit_restart", "twice.service", 57 * MINUTE_NS, 58 * MINUTE_NS),
        59 * MINUTE_NS,
    )
    other = _events("unit_loop", "other.service", 58 * MINUTE_NS)
    keep(tmp_path, other, 59 * MINUTE_NS, "another boot")
    told = read_told_loops(tmp_path, BOOT, 50 * MINUTE_NS)
    assert told == {"new.service", "often.service"}


def test_without_an_archive_nothing_was_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert read_told_loops(nowhere, BOOT, 0) == set()
    assert read_told_walk(nowhere, BOOT, 0) is None
    assert read_told_zombies(nowhere, BOOT) is None


def test_a_damaged_segment_costs_only_itself(tmp_path: Path) -> None:
    keep(tmp_path, _events("unit_loop", "x.service", MINUTE_NS), MINUTE_NS)
    keep(tmp_path, _events("unit_loop", "y.service", MINUTE_NS), MINUTE_NS)
    damaged = sorted((tmp_path / "segments").rglob("events.parquet"))[0]
    damaged.write_bytes(b"torn")
    assert read_told_loops(tmp_path, BOOT, 0) == {"y.service"}

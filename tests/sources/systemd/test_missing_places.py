"""What was given for systemd and is not there is said at once."""

from __future__ import annotations

from pathlib import Path

from nodescope.sources.places import Places
from nodescope.sources.systemd.locations import find_missing


def test_a_bus_and_a_journal_that_are_not_there_are_named(tmp_path: Path) -> None:
    bus, journal = f"unix:path={tmp_path}/bus,guid=7", tmp_path / "journal"
    missing = find_missing(Places(systemd_bus=bus, journal=journal))
    assert [text.partition(":")[0] for text in missing] == [
        "--systemd-bus unix",
        f"--journal {journal}",
    ]
    (tmp_path / "bus").touch()
    journal.mkdir()
    assert find_missing(Places(systemd_bus=bus, journal=journal)) == []


def test_nothing_given_misses_nothing() -> None:
    assert find_missing(Places()) == []
    assert find_missing(Places(systemd_bus="tcp:host=10.0.0.7,port=1")) == []

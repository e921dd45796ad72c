"""What happened to units makes the same events, recorded or imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodescope.exchange.logs.journal import parse_journal_json
from nodescope.ingest.parsed import Notes
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import units
from nodescope.records.event import Event
from nodescope.records.event_details import UnitRunDetails
from nodescope.sources.places import Places
from nodescope.sources.systemd.journal import Journal, JournalMessage, Wanted

WALL_US = 1_794_798_502_000_000


def entry(second: int, message: str, **fields: str) -> dict[str, str]:
    return {
        "__REALTIME_TIMESTAMP": str(WALL_US + second * 1_000_000),
        "_PID": "1",
        "SYSLOG_IDENTIFIER": "systemd",
        "MESSAGE": message,
        **fields,
    }


def journal_events(*entries: dict[str, str]) -> list[Event]:
    text = "".join(json.dumps(one) + "\n" for one in entries)
    return [event for batch in parse_journal_json([text.encode()], Notes()) for event in batch]


def one_run(second: int, number: int) -> list[dict[str, str]]:
    """Started, exited with 1, failed, and to be started again."""
    of = {"UNIT": "agent.service", "INVOCATION_ID": f"{number:032x}"}
    return [
        entry(second, "Started agent.", MESSAGE_ID="39f53479d3a045ac8e11786248231fbf", **of),
        entry(second + 1, "agent.service: Main process exited, code=exited, status=1/FAILURE",
              MESSAGE_ID="98e322203f7a4ed290d09fe03c09fe15", EXIT_CODE="exited", EXIT_STATUS="1",
              **of),
        entry(second + 1, "agent.service: Failed with result 'exit-code'.",
              MESSAGE_ID="d9b373ed55a64feb8242e02dbe79a49c", UNIT_RESULT="exit-code", **of),
        entry(second + 2, "agent.service: Scheduled restart job.", N_RESTARTS=str(number),
              MESSAGE_ID="5eb03494b6584870a536b337290809b3", **of),
    ]  # fmt: skip


def test_units_that_restart_are_seen_by_their_message_ids() -> None:
    events = journal_events(
        *(each for number in range(1, 4) for each in one_run(number * 5, number))
    )
    kinds = [event.kind for event in events]
    run = ["unit_started", "unit_exit", "unit_failed", "unit_restart"]
    assert kinds == [*run, *run, *run, "unit_loop"]
    assert {event.subject for event in events} == {"agent.service"}
    end = UnitRunDetails(invocation=f"{1:032x}", exit_kind="exited", exit_status=1, ran_s=1.0)
    assert events[1].details == end
    assert events[3].message == "started again, number 1 after exit code 1"
    assert events[3].get(UnitRunDetails).restarts == 1


class _Journal:
    """A journal that tells what is put into it."""

    def __init__(self) -> None:
        self.messages: list[JournalMessage] = []

    def take_new(self, wanted: Wanted, most: int | None = None) -> list[JournalMessage]:
        new, self.messages = self.messages, []
        return new


def recorded_events(
    entries: Sequence[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Event]:
    """What the recorder makes of entries of the journal, one look each."""
    journal = _Journal()
    monkeypatch.setattr(Journal, "open", lambda places: journal)
    observer = units.make(Setting(Places(root=tmp_path), tmp_path / "archive"))
    observer.observe(WALL_US * 1000)
    events = []
    for each in entries:
        time_us = int(each["__REALTIME_TIMESTAMP"])
        journal.messages = [JournalMessage(time_us, time_us, "", each)]
        events += observer.observe(time_us * 1000).events
    return events


def test_the_same_restart_reads_the_same_recorded_and_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [each for number in range(1, 4) for each in one_run(number * 5, number)]
    of = {"UNIT": "agent.service", "INVOCATION_ID": f"{9:032x}"}
    entries += [
        entry(30, "agent.service: Main process exited, code=killed, status=9/KILL",
              MESSAGE_ID="98e322203f7a4ed290d09fe03c09fe15", EXIT_CODE="killed", EXIT_STATUS="9",
              **of),
        entry(31, "Failed to start other.service.", UNIT="other.service", JOB_TYPE="start",
              JOB_RESULT="dependency", JOB_ID="77",
              MESSAGE_ID="be02cf6855d2428ba40df7e9d022f03d"),
    ]  # fmt: skip
    imported = journal_events(*entries)
    assert recorded_events(entries, tmp_path, monkeypatch) == imported
    assert {event.kind for event in imported} == {
        "unit_started", "unit_exit", "unit_failed", "unit_restart", "unit_loop",
        "unit_start_failed",
    }  # fmt: skip


def test_only_systemd_itself_tells_of_units() -> None:
    forged = [one | {"_PID": "812"} for one in one_run(1, 1)]
    assert {event.kind for event in journal_events(*forged)} == {"journal"}


def test_numbers_that_are_none_are_left_out() -> None:
    (event,) = journal_events(one_run(1, 1)[3] | {"N_RESTARTS": "²"})
    assert event.kind == "unit_restart"
    assert event.get(UnitRunDetails).restarts is None

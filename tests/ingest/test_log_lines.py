"""An imported log yields the events that a recorder would have made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.text_archive import import_file, read_rows
from tests.sources.kernel_log.messages.formats import FORMATS, OF_NO_KIND, Format

from nodescope.exchange.logs.journal import parse_journal_json, parse_journal_text
from nodescope.exchange.logs.kernel_log import parse_kernel_log
from nodescope.ingest.parsed import Event, Notes

WALL_US = 1_794_798_502_000_000
OOM = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
    "task_memcg=/a/b,task=stress,pid=4242,uid=0"
)
KILLED = (
    "Memory cgroup out of memory: Killed process 4242 (stress) total-vm:1024kB, anon-rss:512kB, "
    "file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:12kB oom_score_adj:0"
)


def kernel_events(*lines: str) -> list[Event]:
    text = "".join(f"[  {100 + number}.000000] {line}\n" for number, line in enumerate(lines))
    return [event for batch in parse_kernel_log([text.encode()], Notes()) for event in batch]


def facts(event: Event) -> dict[str, Any]:
    return {"cpu": event.cpu, **(event.details or {})}


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.text[:40])
def test_a_line_of_a_kernels_log_is_what_the_recorder_makes_of_it(known: Format) -> None:
    (event,) = kernel_events(known.text)
    assert (event.kind, event.subject) == (known.kind, known.subject)
    assert event.message == known.text.partition("\n")[0]
    found = facts(event)
    assert {name: found.get(name) for name in known.says} == known.says


@pytest.mark.parametrize("text", OF_NO_KIND)
def test_other_lines_are_lines(text: str) -> None:
    (event,) = kernel_events(text)
    assert event.kind == "kernel"
    assert event.details is None


def test_lines_that_belong_together_are_one_event() -> None:
    oom, killed = kernel_events(OOM, KILLED)
    assert (oom.kind, killed.kind) == ("oom_kill", "kernel")
    assert facts(oom)["pid"] == 4242
    assert facts(oom)["anonymous_bytes"] == 512 * 1024


def test_what_a_user_wrote_says_so_and_a_dump_keeps_the_kernels_numbers() -> None:
    text = (
        "12,77,123456789,-;ena 0000:90:00.0 eth0: Trigger reset is on\n"
        "4,78,123456790,-;ena 0000:90:00.0 eth0: Trigger reset is on\n"
    )
    (batch,) = parse_kernel_log([text.encode()], Notes())
    assert [(event.kind, event.details) for event in batch] == [
        ("nic_reset", {"driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
                       "sequence": 77, "user": True}),
        ("nic_reset", {"driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
                       "sequence": 78}),
    ]  # fmt: skip


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
    assert events[1].details == {"invocation": f"{1:032x}", "exit_code": "exited",
                                 "exit_status": 1, "ran_s": 1.0}  # fmt: skip
    assert events[3].message == "agent.service: Scheduled restart job."
    assert (events[3].details or {})["restarts"] == 1


def test_only_systemd_itself_tells_of_units() -> None:
    forged = [one | {"_PID": "812"} for one in one_run(1, 1)]
    assert {event.kind for event in journal_events(*forged)} == {"journal"}


def test_numbers_that_are_none_are_left_out() -> None:
    (event,) = journal_events(one_run(1, 1)[3] | {"N_RESTARTS": "²"})
    assert event.kind == "unit_restart"
    assert "restarts" not in (event.details or {})


def test_the_kernel_in_a_journal_is_read_alike() -> None:
    said = entry(1, "ena 0000:90:00.0 eth0: Trigger reset is on", _TRANSPORT="kernel")
    (as_json,) = journal_events(said)
    line = f"2026-11-16T03:08:23+00:00 node kernel: {said['MESSAGE']}\n"
    ((as_text,),) = parse_journal_text([line.encode()], Notes())
    assert as_json.kind == as_text.kind == "nic_reset"
    assert as_json.details == as_text.details == {
        "driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
    }  # fmt: skip


def test_core_and_details_are_in_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text("[  100.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [dd:812]\n")
    _, archive = import_file(path, tmp_path / "archive")
    (row,) = read_rows(archive, "events")
    assert (row["kind"], row["cpu"]) == ("soft_lockup", 3)
    assert json.loads(row["details"])["pid"] == 812

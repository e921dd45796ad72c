from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kernel_log import write_line
from tests.recorder.observers.archived import keep
from tests.recorder_process import recording

from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock, read_pair
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.catalogue import NAMES
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS

Nodescope = Callable[..., Any]
EVENTS = (
    ("recorder_started", "recorder", "started", None, None),
    ("nic_tx_timeout", "eth0", "TX q 11 is paused", 37, '{"queue": 11, "since_poll_ms": 5340}'),
    ("nic_reset", "eth0", "Trigger reset is on", None, None),
    ("oom_kill", "java", "killed", None, '{"memcg": "/a"}'),
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    now = read_pair(SystemClock())
    with ArchiveWriter.open(
        tmp_path / "archive", node={"name": "hand"}, clock=SystemClock(), tick_ns=1000
    ) as writer:
        for number, (kind, subject, message, cpu, details) in enumerate(EVENTS):
            writer.append(
                "events",
                {
                    "time_ns": [now.monotonic_ns + number],
                    "kind": [kind],
                    "subject": [subject],
                    "message": [message],
                    "cpu": [cpu],
                    "details": [details],
                },
            )
    return tmp_path / "archive"


def _kinds(nodescope: Nodescope, *arguments: Any) -> list[str]:
    document = json.loads(nodescope("events", *arguments, "--json").out)
    return [event["kind"] for event in document]


def test_what_logs_remembered_of_before_the_recording_does_not_bury_it(
    nodescope: Nodescope,
) -> None:
    """Issue 13, point 13: 42 of 44 rows preceded the recording."""
    bundle = ("--archive", Path("tests/diagnosis/bundles/zombie-agent.bundle"))
    listed, _, before = nodescope("events", *bundle).out.partition("\n\n")
    first = listed.splitlines()[1]
    assert first.split()[:2] == ["2026-11-17T03:29:36.036Z", "recorder_started"]
    assert before.startswith("before the recording, from logs: 10 events (10 nic_reset)\n")
    command = shlex.split(before.splitlines()[1].strip().removeprefix("$ nodescope "))
    earlier = nodescope(*command).out.splitlines()
    assert len(earlier) == 1 + 10
    assert "before the recording" not in nodescope("events", *bundle, "--at", "03:29:43").out
    every = json.loads(nodescope("events", *bundle, "--json").out)
    assert len(every) == len(listed.splitlines()) - 1 + 10


def test_an_unknown_kind_is_refused(archive: Path, nodescope: Nodescope) -> None:
    """Issue 13, point 7: `--kind foo` answered "no events", with exit code 0."""
    result = nodescope("events", "--archive", archive, "--kind", "oom_kill,foo")
    assert (result.code, result.out) == (2, "")
    assert "no such kind of event: foo" in result.err
    assert "recorded here: nic_reset, nic_tx_timeout, oom_kill, recorder_started" in result.err
    assert nodescope("events", "--archive", archive, "--kind", "soft_lockup").code == 0


def test_kinds_may_be_named_in_one_or_several(archive: Path, nodescope: Nodescope) -> None:
    where = ("--archive", archive)
    assert len(_kinds(nodescope, *where)) == len(EVENTS)
    assert _kinds(nodescope, *where, "--kind", "nic_reset,oom_kill") == ["nic_reset", "oom_kill"]
    assert _kinds(nodescope, *where, "--kind", "nic_reset", "--kind", "oom_kill") == [
        "nic_reset",
        "oom_kill",
    ]


def test_only_serious_ones(archive: Path, nodescope: Nodescope) -> None:
    assert _kinds(nodescope, "--archive", archive, "--serious") == [
        kind for kind, *_ in EVENTS if EVENT_KINDS[kind].serious
    ]
    assert _kinds(nodescope, "--archive", archive, "--serious", "--kind", "oom_kill") == [
        "oom_kill"
    ]


@pytest.fixture
def with_history(tmp_path: Path) -> Path:
    """A recorder that found a line of a minute ago in the kernel's log when it started."""
    started = 7_200 * SECOND_NS
    before = Event(started - 60 * SECOND_NS, "nic_keepalive_lost", "eth0", "Keep alive watchdog")
    older = Event(started - 3_600 * SECOND_NS, "nic_tx_late", "eth0", "late")
    own = Event(started + SECOND_NS, "recorder_started", "recorder", "started")
    keep(tmp_path / "history", Observation(events=[own, before, older]), started)
    return tmp_path / "history"


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ((), ["nic_tx_late", "nic_keepalive_lost", "recorder_started"]),
        (("--serious",), ["nic_keepalive_lost"]),
        (("--kind", "nic_tx_late"), ["nic_tx_late"]),
        (("--last", "30m"), ["nic_keepalive_lost", "recorder_started"]),
        (("--from", "2023-11-15T00:12:00Z"), ["nic_keepalive_lost", "recorder_started"]),
        (("--from", "2020-01-01T00:00:00Z", "--to", "2023-11-15T00:00:00Z"), ["nic_tx_late"]),
        (("--from", "+0s"), ["recorder_started"]),  # from the recording's own start
        (("--at", "2023-11-15T00:12:20Z", "--around", "1m"), ["nic_keepalive_lost"]),
    ],
)
def test_what_the_log_remembered_from_before_is_among_them(
    with_history: Path, nodescope: Nodescope, asked: tuple[str, ...], kinds: list[str]
) -> None:
    assert _kinds(nodescope, "--archive", with_history, *asked) == kinds


def test_before_the_first_line_there_is_nothing(with_history: Path, nodescope: Nodescope) -> None:
    said = nodescope("events", "--archive", with_history, "--to", "2023-11-14T00:00:00Z")
    assert said.code == 2
    assert "the recording covers 2023-11-15T00:13:20" in said.err
    assert "has events since 2023-11-14T23:13:20" in said.err


def test_a_mark_of_before_the_recording_is_shown(with_history: Path, nodescope: Nodescope) -> None:
    nodescope("mark", "early", "--at", "2023-11-14T10:00:00Z", "--archive", with_history)
    shown = nodescope("events", "--archive", with_history).out
    assert "before the recording, from logs and marks:" in shown
    assert "1 mark" in shown
    to = ("--to", "2023-11-14T12:00:00Z")
    assert "early" in nodescope("events", "--archive", with_history, *to).out
    # other views are of what was recorded
    assert nodescope("cores", "--archive", with_history, "--at", "2023-11-15T00:12:20Z").code == 2


def test_the_core_has_a_column_and_details_a_line(archive: Path, nodescope: Nodescope) -> None:
    shown = nodescope("events", "--archive", archive, "--details").out.splitlines()
    assert shown[0].split()[-2:] == ["core", "message"]
    at = next(number for number, line in enumerate(shown) if "nic_tx_timeout" in line)
    assert shown[at].split()[3] == "37"
    assert "queue=11  since_poll_ms=5340" in shown[at + 1]
    assert "since_poll_ms" not in nodescope("events", "--archive", archive).out


def test_a_mark_is_among_the_events_at_once(archive: Path, nodescope: Nodescope) -> None:
    marked = nodescope("mark", "rollout of 2.4", "--archive", archive)
    assert (marked.code, marked.out.startswith("marked 2")) == (0, True)
    document = json.loads(nodescope("events", "--archive", archive, "--json").out)
    last = document[-1]
    assert (last["kind"], last["subject"], last["message"]) == ("mark", "node", "rollout of 2.4")
    assert nodescope("events", "--archive", archive, "--to", "1h ago").code != 1


def test_a_failed_job_is_marked_with_its_name(archive: Path, nodescope: Nodescope) -> None:
    said = nodescope(
        "mark", "exit 137", "--kind", "job_failed", "--subject", "train-7", "--archive", archive,
        "--at", "now", "--json",
    )  # fmt: skip
    assert json.loads(said.out)["subject"] == "train-7"
    assert _kinds(nodescope, "--archive", archive)[-1] == "job_failed"


def test_a_mark_wants_a_text_and_an_archive(
    archive: Path, tmp_path: Path, nodescope: Nodescope
) -> None:
    assert nodescope("mark", "  ", "--archive", archive).code == 2
    assert nodescope("mark", "text", "--archive", tmp_path / "none").code == 2
    assert nodescope("mark", "text", "--archive", archive, "--at", "someday").code == 2


def test_an_imported_kind_may_be_asked_for(archive: Path, nodescope: Nodescope) -> None:
    assert _kinds(nodescope, "--archive", archive, "--kind", "kernel") == []


@pytest.mark.live
@pytest.mark.beside
@pytest.mark.root
def test_a_line_from_before_a_real_recorder_is_shown(tmp_path: Path, nodescope: Nodescope) -> None:
    archive = tmp_path / "archive"
    text = f"nodescope-history-{os.getpid()}: ena 0000:90:00.0 eth9: Keep alive watchdog timeout."
    write_line(text)
    left_out = [f"--without={name}" for name in NAMES if name != "kernel_log"]

    def shown() -> list[str]:
        said = nodescope("events", "--archive", archive, "--serious", "--json")
        events = json.loads(said.out) if said.code == 0 else []
        return [event["message"] for event in events if event["message"] == text]

    with recording(archive, "--frequency", "1", "--flush", "200ms", *left_out) as recorder:
        recorder.wait_for(shown, "the line among the events, from the open segment")
    assert shown() == [text]  # and from the sealed one


@pytest.mark.live
@pytest.mark.beside
def test_a_running_recorder_takes_a_mark_in(tmp_path: Path, nodescope: Nodescope) -> None:
    archive = tmp_path / "archive"
    left_out = [f"--without={name}" for name in NAMES if name != "marks"]

    def recorded() -> bool:
        texts = [
            text
            for segment in Archive.open(archive).segments()
            for text in segment.read("events").column("message").to_pylist()
        ]
        return texts.count("while it runs") == 1

    with recording(archive, "--frequency", "1", "--flush", "200ms", *left_out) as recorder:
        assert nodescope("mark", "while it runs", "--archive", archive).code == 0
        recorder.wait_for(recorded, "the mark in a segment")
    assert recorded()


def test_a_diagnosis_counts_what_was_serious_before_it(
    with_history: Path, nodescope: Nodescope
) -> None:
    diagnosed = nodescope("diagnose", "--archive", with_history)
    assert diagnosed.code == 2  # nobody read the kernel log while it was recorded
    assert "1 × nic_keepalive_lost" in diagnosed.out
    assert "nodescope events --serious --to" in diagnosed.out


_TRACED = (
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [kubelet:812]",
    "CPU: 3 UID: 0 PID: 812 Comm: kubelet Not tainted 6.18.44 #1",
    "RIP: 0010:mem_cgroup_nr_lru_pages+0x12/0x50",
    "Call Trace:",
    " memcg_numa_stat_show+0x10/0x10",
)


def test_an_imported_trace_is_in_the_archive_and_shown_with_its_event(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    log = tmp_path / "dmesg.txt"
    log.write_text("".join(f"[  100.00000{n}] {line}\n" for n, line in enumerate(_TRACED)))
    root = tmp_path / "archive"
    assert nodescope("import", log, "--archive", root).code == 0
    shown = nodescope("events", "--archive", root, "--kind", "soft_lockup").out
    assert "call trace of kubelet:812: mem_cgroup_nr_lru_pages < memcg_numa_stat_show" in shown
    table = nodescope("export", "csv", "--table", "call_traces", "--output", "-", "--archive", root)
    assert "memcg_numa_stat_show;mem_cgroup_nr_lru_pages" in table.out

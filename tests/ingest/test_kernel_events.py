"""Lines of a kernel's log make the same events, recorded or imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.text_archive import import_file, read_rows
from tests.sources.kernel_log.messages.formats import FORMATS, OF_NO_KIND
from tests.sources.kernel_log.messages.trouble_formats import Format

from nodescope.errors import SourceError
from nodescope.exchange.logs.journal import parse_journal_json, parse_journal_text
from nodescope.exchange.logs.kernel_log import parse_kernel_log
from nodescope.ingest.parsed import Notes
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import kernel_log as observer
from nodescope.records.event import Event
from nodescope.records.witness_tables import CallTraceRow
from nodescope.sources.kernel_log.kmsg import KmsgBatch, Record
from nodescope.sources.places import Places

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
    return {"cpu": event.cpu, **event.details.to_json()}


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
    assert not event.details


def test_lines_that_belong_together_are_one_event() -> None:
    oom, killed = kernel_events(OOM, KILLED)
    assert (oom.kind, killed.kind) == ("oom_kill", "kernel")
    assert facts(oom)["pid"] == 4242
    assert facts(oom)["anonymous_bytes"] == 512 * 1024


def test_the_lines_before_an_oom_kill_complete_its_event() -> None:
    lines = (
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=984",
        "memory: usage 20480kB, limit 20480kB, failcnt 1042",
        "memory+swap: usage 20480kB, limit 20480kB, failcnt 0",
        OOM,
        KILLED,
        "Tasks in /a/b are going to be killed due to memory.oom.group set",
    )
    (event,) = [event for event in kernel_events(*lines) if event.kind == "oom_kill"]
    found = facts(event)
    assert (found["asked_by"], found["memcg"], found["pid"]) == ("python3", "/a", 4242)
    assert found["usage_bytes"] == found["limit_bytes"] == 20480 * 1024
    assert found["whole_group"] is True
    again = [event for event in kernel_events(*lines, OOM) if event.kind == "oom_kill"]
    assert "asked_by" not in facts(again[1])  # nothing announced the second


def test_a_gpu_that_three_lines_report_lost_is_one_event_with_its_address() -> None:
    events = kernel_events(
        "NVRM: The NVIDIA GPU 0000:3b:00.0",
        "NVRM: (PCI ID: 10de:20b0) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    )
    (lost,) = [event for event in events if event.kind == "gpu_lost"]
    assert (lost.subject, facts(lost)["device"]) == ("0000:3b:00.0", "0000:3b:00.0")


def test_what_a_user_wrote_says_so_and_a_dump_keeps_the_kernels_numbers() -> None:
    text = (
        "12,77,123456789,-;ena 0000:90:00.0 eth0: Trigger reset is on\n"
        "4,78,123456790,-;ena 0000:90:00.0 eth0: Trigger reset is on\n"
    )
    (batch,) = parse_kernel_log([text.encode()], Notes())
    assert [(event.kind, event.details.to_json()) for event in batch] == [
        ("nic_reset", {"driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
                       "sequence": 77, "user": True}),
        ("nic_reset", {"driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
                       "sequence": 78}),
    ]  # fmt: skip


def test_the_kernel_in_a_journal_is_read_alike() -> None:
    text = "ena 0000:90:00.0 eth0: Trigger reset is on"
    entry = {"__REALTIME_TIMESTAMP": "1794798503000000", "_TRANSPORT": "kernel", "MESSAGE": text}
    ((as_json,),) = parse_journal_json([json.dumps(entry).encode()], Notes())
    line = f"2026-11-16T03:08:23+00:00 node kernel: {text}\n"
    ((as_text,),) = parse_journal_text([line.encode()], Notes())
    assert as_json.kind == as_text.kind == "nic_reset"
    assert as_json.details.to_json() == as_text.details.to_json() == {
        "driver": "ena", "device": "0000:90:00.0", "interface": "eth0",
    }  # fmt: skip


class _Log:
    """A kernel's log that holds what is written here."""

    def __init__(self, lines: list[str]) -> None:
        self._records = [
            Record(number, number * SECOND_NS, 6, 0, line) for number, line in enumerate(lines)
        ]

    def read(self, most: int, after: int) -> KmsgBatch:
        batch, self._records = KmsgBatch(self._records), []
        return batch


def test_a_recorder_and_an_import_make_the_same_of_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [known.text.partition("\n")[0] for known in FORMATS] + [OOM, KILLED]
    monkeypatch.setattr(observer, "KernelLog", lambda places: _Log(lines))
    monkeypatch.setattr(observer, "KernelClock", _no_clock)
    said = observer.make(Setting(Places(), tmp_path)).observe(0)
    dump = "".join(f"6,{number},{number}000000,-;{line}\n" for number, line in enumerate(lines))
    imported = [each for batch in parse_kernel_log([dump.encode()], Notes()) for each in batch]
    assert [each for each in said.events if each.kind != "source_degraded"] == [
        each for each in imported if each.kind != "kernel"
    ]
    assert len(said.events) > len(FORMATS) // 2
    assert not any(each.details.others for each in said.events)


_TRACED = [
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [kubelet:812]",
    "CPU: 3 UID: 0 PID: 812 Comm: kubelet Not tainted 6.18.44 #1",
    "RIP: 0010:mem_cgroup_nr_lru_pages+0x12/0x50",
    "Call Trace:",
    " <TASK>",
    " memcg_numa_stat_show+0x10/0x10",
    " </TASK>",
]


def test_a_call_trace_is_a_row_beside_its_event_recorded_or_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [Record(70 + number, number, 6, 0, line) for number, line in enumerate(_TRACED)]
    log = _Log([])
    monkeypatch.setattr(log, "_records", records)
    monkeypatch.setattr(observer, "KernelLog", lambda places: log)
    monkeypatch.setattr(observer, "KernelClock", _no_clock)
    (recorded,) = observer.make(Setting(Places(), tmp_path)).observe(0).rows_of(CallTraceRow)
    notes = Notes()
    dump = "".join(f"6,{70 + number},0,-;{line}\n" for number, line in enumerate(_TRACED))
    list(parse_kernel_log([dump.encode()], notes))
    assert [row.as_dict() for row in notes.rows] == [{**recorded.as_dict(), "time_ns": 0}]
    assert (recorded.sequence, recorded.cpu, recorded.event_kind) == (71, 3, "soft_lockup")
    assert recorded.stack == "memcg_numa_stat_show;mem_cgroup_nr_lru_pages"
    other = "".join(f"2026-11-16T03:08:23+00:00 node kernel: {line}\n" for line in _TRACED)
    notes = Notes()
    list(parse_journal_text([other.encode()], notes))
    (row,) = notes.rows
    assert isinstance(row, CallTraceRow)
    assert (row.stack, row.comm) == (recorded.stack, "kubelet")


def _no_clock() -> None:
    raise SourceError("/dev/kmsg", "no clock here")


def test_core_and_details_are_in_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text("[  100.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [dd:812]\n")
    _, archive = import_file(path, tmp_path / "archive")
    (row,) = [row for row in read_rows(archive, "events") if row["kind"] != "import"]
    assert (row["kind"], row["cpu"]) == ("soft_lockup", 3)
    assert json.loads(row["details"])["pid"] == 812

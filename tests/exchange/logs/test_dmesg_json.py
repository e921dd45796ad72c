"""`dmesg --json`: the same events as its plain form, also cut short."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nodescope.exchange.logs.dmesg_json import looks_like_dmesg_json, plain_lines
from nodescope.exchange.logs.kernel_log import parse_kernel_log
from nodescope.ingest.parsed import Notes
from nodescope.records.event import Event
from nodescope.records.witness_tables import CallTraceRow

_LINES = [
    "systemd[1]: hello \"you\"",
    "cgroup: fork rejected by pids controller in /system.slice/a.service",
    "CPU: 3 PID: 812 Comm: kubelet Not tainted 6.18.44 #1",
    "Call Trace:",
    " f+0x1/0x2",
    "dd: attempt to access beyond end of device\nloop7: rw=2049, sector=1",
]  # fmt: skip


def _document(*, priority: bool = True) -> bytes:
    """Write it as util-linux does: a field a line."""
    messages = [
        {**({"pri": 4} if priority else {"fac": "kern", "pri": "warn"}),
         "time": 100 + number / 10, "msg": line}
        for number, line in enumerate(_LINES)
    ]  # fmt: skip
    rows = "".join(
        "{\n"
        + ",\n".join(f'   "{key}": {json.dumps(value)}' for key, value in row.items())
        + "\n},"
        for row in messages
    )
    return ('{\n   "dmesg": [\n' + rows.rstrip(",") + "\n]\n}\n").encode()


def _read(document: bytes) -> tuple[list[Event], Notes]:
    notes = Notes()
    blocks = plain_lines([document[:100], document[100:]])
    return [event for batch in parse_kernel_log(blocks, notes) for event in batch], notes


def test_it_says_what_the_plain_form_says() -> None:
    text = "".join(f"<4>[  10{n / 10:08.6f}] {line}\n" for n, line in enumerate(_LINES))
    plain = [event for batch in parse_kernel_log([text.encode()], Notes()) for event in batch]
    for document in (_document(), _document(priority=False)):
        assert looks_like_dmesg_json(document)
        events, notes = _read(document)
        assert events == plain
        (trace,) = notes.rows
        assert isinstance(trace, CallTraceRow)
        assert (trace.comm, trace.stack) == ("kubelet", "f")
    assert {"pids_limit", "disk_io_error"} <= {event.kind for event in plain}


def test_a_cut_file_gives_what_it_has() -> None:
    events, _ = _read(_document()[:250])
    assert [event.message for event in events][:1] == ['systemd[1]: hello "you"']


@given(st.binary(max_size=400))
def test_nothing_that_is_written_breaks_it(data: bytes) -> None:
    looks_like_dmesg_json(data)
    _read(b'{"dmesg": [\n{\n' + data)

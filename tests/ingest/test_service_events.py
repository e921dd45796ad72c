"""Reports of services are the same events live and imported, and a flood of them stays few."""

from __future__ import annotations

import json

from nodescope.exchange.logs.journal import parse_journal_json, parse_journal_text
from nodescope.ingest.parsed import Notes
from nodescope.ingest.service_events import ServiceEvents
from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.trouble_details import ServiceReportDetails

_PROBE = 'I1117 prober.go:107] "Probe failed" probeType="Liveness" pod="web/api-{}" output="x"'
_SECOND = 1_800_000_000


def _text(*lines: tuple[str, str]) -> list[Event]:
    log = "".join(
        f"2027-01-15T08:{number // 60:02}:{number % 60:02}+00:00 node {who}[812]: {line}\n"
        for number, (who, line) in enumerate(lines)
    )
    return [event for batch in parse_journal_text([log.encode()], Notes()) for event in batch]


def test_a_flood_is_two_events_a_minute_with_its_number() -> None:
    services = ServiceEvents()
    made = [
        event
        for number in range(10_000)
        for event in services.take(number * SECOND_NS // 50, "kubelet", _PROBE.format(number)) or []
    ]
    made += services.flush()
    assert len(made) == 2 * 4  # 200 seconds
    assert [event.get(ServiceReportDetails).times for event in made[:2]] == [None, 2_999]
    counted = sum(event.get(ServiceReportDetails).times or 1 for event in made)
    assert counted == 10_000


def test_minutes_that_are_over_are_told_without_another_line() -> None:
    services = ServiceEvents()
    services.take(0, "kubelet", _PROBE)
    services.take(SECOND_NS, "kubelet", _PROBE)
    assert services.flush(30 * SECOND_NS) == []
    (event,) = services.flush(60 * SECOND_NS)
    assert (event.time_ns, event.get(ServiceReportDetails).times) == (SECOND_NS, 1)
    assert services.flush() == []


def test_an_imported_text_and_journal_say_the_same_as_the_recorder() -> None:
    line = _PROBE.format(7)
    (live,) = ServiceEvents().take(_SECOND * SECOND_NS, "kubelet.service", line) or []
    entry = {
        "__REALTIME_TIMESTAMP": str(_SECOND * 1_000_000), "MESSAGE": line,
        "_SYSTEMD_UNIT": "kubelet.service", "_TRANSPORT": "stdout",
    }  # fmt: skip
    batches = parse_journal_json([json.dumps(entry).encode() + b"\n"], Notes())
    assert [event for batch in batches for event in batch] == [live]
    (text,) = _text(("kubelet", line))
    assert (text.kind, text.subject, text.details) == (live.kind, live.subject, live.details)
    assert (live.subject, live.get(ServiceReportDetails).pod) == ("kubelet.service", "web/api-7")


def test_lines_that_report_nothing_stay_lines() -> None:
    events = _text(("kubelet", "Started"), ("kubelet", _PROBE), ("kubelet", _PROBE), ("x", _PROBE))
    assert [event.kind for event in events] == [
        "journal", "probe_failing", "journal", "journal", "probe_failing",
    ]  # fmt: skip

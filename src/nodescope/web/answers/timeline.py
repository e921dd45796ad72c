"""The timeline: what is recorded, the strip of cores, tracks, events."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import nodescope
from nodescope.analysis.core_strips import FULL, SHOWN, find_peaks
from nodescope.analysis.tracks import TRACKS, draw_line, known_tracks
from nodescope.archive.gaps import find_gaps
from nodescope.archive.retention import read_frozen
from nodescope.arrays import F64
from nodescope.errors import ArchiveError
from nodescope.pictures.answer_size import LARGEST, cut, keep_fitting
from nodescope.recording.core_readings import NEIGHBOUR_NS
from nodescope.recording.part import Part, may_hold_events
from nodescope.recording.pending_marks import read_waiting, with_waiting
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.json import Json
from nodescope.records.recorder_tables import Gap
from nodescope.web.answers.replies import json_reply
from nodescope.web.matrix import MEDIA_TYPE, encode_matrix
from nodescope.web.question import Question, Reply, Values, to_ms

MOST_COLUMNS = 4096
MOST_GAPS = 2000
NARROWEST_NS = 100_000  # a column of the timeline
PATIENCE_S = 0.35  # how long a first look may take before it is shown in part
_MOST_CELLS = LARGEST - 40_000


def recording(question: Question) -> Reply:
    """Which node, from when to when, what is missing."""
    snapshot = question.snapshot
    window, node = snapshot.window, snapshot.archive.info.node
    descriptions = [segment.description for segment in snapshot.segments]
    latest = snapshot.segments[-1]
    return json_reply(
        {
            "node": {
                "hostname": cut(str(node.get("name") or "node")),
                **{cut(str(key)): _plain(value) for key, value in list(node.items())[:50]},
            },
            "from_ms": to_ms(window.from_ns),
            "to_ms": to_ms(window.to_ns),
            "cpus": question.shelf.take(latest).strip.cpus.tolist() or _cpus_of(node),
            "tables": sorted({name for each in descriptions for name in each.tables}),
            "gaps": [_gap(gap) for gap in _main_gaps(find_gaps(snapshot.segments))],
            "frozen": _frozen(question),
            "live": snapshot.live,
            "samples": sum(each.samples for each in descriptions),
            "segments": len(descriptions),
            "damaged": [cut(str(error)) for error in snapshot.damaged[:20]],
            "version": nodescope.__version__,
            "revision": snapshot.revision,
        }
    )


def _plain(value: object) -> object:
    return value if isinstance(value, int | bool) or value is None else cut(str(value))


def _cpus_of(node: dict[str, object]) -> list[int]:
    count = node.get("cpus")
    return list(range(count)) if isinstance(count, int) and 0 < count <= 8192 else []


def _main_gaps(gaps: Iterable[Gap]) -> list[Gap]:
    """The longest, in the order of time."""
    longest = sorted(gaps, key=lambda gap: gap.from_ns - gap.to_ns)[:MOST_GAPS]
    return sorted(longest, key=lambda gap: gap.from_ns)


def _gap(gap: Gap) -> dict[str, Json]:
    return {
        "from_ms": to_ms(gap.from_ns),
        "to_ms": to_ms(gap.to_ns),
        "reason": cut(gap.reason, 200),
        "source": cut(gap.source),
        "cpu": gap.cpu,
        "lost": gap.lost,
    }


def _frozen(question: Question) -> list[dict[str, Json]]:
    archive = question.snapshot.archive
    if archive.bundle is not None:
        return []
    try:
        frozen = read_frozen(archive.root)
    except ArchiveError:
        return []  # `nodescope status` names what is damaged
    return [
        {
            "from_ms": to_ms(each.from_ns),
            "to_ms": to_ms(each.to_ns),
            "reason": cut(each.reason, 200),
        }
        for each in frozen[:1000]
    ]


# -- columns ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of a picture of a window."""

    from_ns: int
    column_ns: int
    count: int

    @property
    def window(self) -> Window:
        return Window(self.from_ns, self.from_ns + self.column_ns * self.count)


def choose_columns(window: Window, wanted: int, narrowest_ns: int = NARROWEST_NS) -> EventColumns:
    """Columns that fill a window; none is narrower than anything recorded."""
    width = max(narrowest_ns, -(-window.length_ns // wanted))
    return EventColumns(window.from_ns, width, max(1, -(-window.length_ns // width)))


# -- cores ------------------------------------------------------------------------


def cores(question: Question) -> Reply:
    """The peak share of each core in each column, and the node's mean."""
    columns = choose_columns(question.asked, question.values["columns"])
    segments = question.overlapping(columns.window.widened(NEIGHBOUR_NS))
    shelf, started = question.shelf, time.monotonic()
    ready = []
    # The newest first, as they are filled; what is not reduced yet comes with the next look.
    for segment in reversed(segments):
        if not (segment.is_open or shelf.has(segment)):
            if time.monotonic() - started > PATIENCE_S:
                break
            question.check()
        shelf.take(segment)
        ready.append(segment)
    strips = list(shelf.strips(ready[::-1]))
    state = question.values["state"]
    found = find_peaks(strips, state, columns.from_ns, columns.column_ns, columns.count)
    chosen = question.samples.cpus
    rows = [row for row, cpu in enumerate(found.cpus) if chosen is None or cpu in chosen]
    rows = rows[: _MOST_CELLS // columns.count]
    header = {
        "from_ms": to_ms(columns.from_ns),
        "column_ms": to_ms(columns.column_ns),
        "columns": columns.count,
        "rows": [found.cpus[row] for row in rows],
        "state": state,
        "scale": 1 / FULL,
        "missing": 255,
        "complete": len(ready) == len(segments),
        "left_off": len(found.cpus) - len(rows) if chosen is None else 0,
    }
    blocks = {"peak": found.shares[rows], "average": found.average}
    return Reply(encode_matrix(header, blocks), MEDIA_TYPE, whole=len(ready) == len(segments))


_FIRST = ("system", "softirq", "total")
STATES = (*_FIRST, *(state for state in SHOWN if state not in _FIRST))


# -- tracks -----------------------------------------------------------------------


def tracks(question: Question) -> Reply:
    """The lines there are in this recording."""
    reduced = [question.shelf.take(each).tracks for each in _spread(question)]
    return json_reply(
        [
            {"name": each.name, "title": each.title, "unit": each.unit, "group": each.group}
            for each in known_tracks(reduced)
        ]
    )


def _spread(question: Question) -> list[Part]:
    """A few segments of all of the recording: what was observed rarely changes."""
    segments = question.snapshot.segments
    step = max(1, len(segments) // 8)
    return [*segments[::step], segments[-1]]


def track(question: Question) -> Reply:
    """One line, in columns."""
    chosen = TRACKS[question.values["name"]]
    columns = choose_columns(question.asked, question.values["columns"])
    parts = []
    for segment in question.overlapping(columns.window.widened(12 * NEIGHBOUR_NS)):
        question.check()
        readings = question.shelf.take(segment).tracks.get(chosen.name)
        if readings is not None:
            parts.append(readings)
    line = draw_line(parts, chosen.kind, columns.from_ns, columns.column_ns, columns.count)
    return json_reply(
        {
            "name": chosen.name,
            "title": chosen.title,
            "unit": chosen.unit,
            "group": chosen.group,
            "from_ms": to_ms(columns.from_ns),
            "column_ms": to_ms(columns.column_ns),
            "most": _nullable(line.most),
            "mean": _nullable(line.mean),
        }
    )


def _nullable(values: F64) -> list[float | None]:
    digits = [float(f"{value:.5g}") for value in values.tolist()]
    return [None if math.isnan(value) else value for value in digits]


# -- events -----------------------------------------------------------------------


def events(question: Question) -> Reply:
    """Return the window's events: if too many, serious ones first, then the latest."""
    values = question.values
    found = [event for event in _events(question) if _wanted(event, values, question.samples.cpus)]
    limit = values["limit"]
    order = sorted(range(len(found)), key=lambda at: (not _serious(found[at].kind), -at))
    kept = [found[at] for at in sorted(order[:limit])]
    documents = keep_fitting([_event(event) for event in reversed(kept)], LARGEST - 100)
    return json_reply({"events": documents[::-1], "left_off": len(found) - len(documents)})


def _events(question: Question) -> list[Event]:
    window = question.asked
    found: list[Event] = []
    for segment in question.snapshot.segments:
        if may_hold_events(segment, window):
            question.check()
            found += [
                event
                for event in question.shelf.take(segment).events
                if window.from_ns <= event.time_ns < window.to_ns
            ]
    if question.snapshot.archive.bundle is not None:
        return found
    waiting = read_waiting(question.snapshot.archive.root)
    return with_waiting(found, waiting, window, to_now=False)


def _wanted(event: Event, values: Values, cpus: frozenset[int] | None) -> bool:
    kinds = values["kinds"]
    if kinds is not None and event.kind not in kinds:
        return False
    if cpus is not None and event.cpu is not None and event.cpu not in cpus:
        return False
    return not values["serious"] or _serious(event.kind)


def _serious(kind: str) -> bool:
    known = EVENT_KINDS.get(kind)
    return known is not None and known.serious


def _event(event: Event) -> dict[str, Json]:
    known = EVENT_KINDS.get(event.kind)
    details = event.details.to_json()
    return {
        "time_ms": to_ms(event.time_ns),
        "kind": cut(event.kind),
        "title": known.help if known else cut(event.kind),
        "serious": _serious(event.kind),
        "subject": cut(event.subject),
        "message": cut(event.message, 4096),
        "cpu": event.cpu,
        "details": details if len(str(details)) <= 4096 else None,
    }

"""Views as plain rows, for CSV and Parquet: one schema and batches of columns each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.cores import CoreShares
from nodescope.analysis.heatmap import Heatmap
from nodescope.analysis.top import TopEntry
from nodescope.archive.schema import ColumnData
from nodescope.exchange.export.stacks import ChosenSamples, ExportedStacks, count, label
from nodescope.recording.core_readings import STATES
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records import Table
from nodescope.records.event import Event
from nodescope.wall_time import format_moment

Batches = Iterable[ColumnData]


@dataclass(frozen=True)
class ViewRows:
    """Columns by Arrow type, and what is in them."""

    schema: dict[str, str]
    batches: Batches


def top_rows(entries: Sequence[TopEntry], *, functions: bool) -> ViewRows:
    """One row per line of `top`."""
    schema = {"name": "string", "samples": "int64", "share": "double"}
    batch: dict[str, Sequence[object]] = {
        "name": [entry.name for entry in entries],
        "samples": [entry.samples for entry in entries],
        "share": [entry.share for entry in entries],
    }
    if functions:
        schema |= {"self": "int64", "module": "string"}
        batch |= {
            "self": [entry.own for entry in entries],
            "module": [entry.module for entry in entries],
        }
    return ViewRows(schema, [batch])


def heatmap_rows(heatmap: Heatmap) -> ViewRows:
    """One row per cell that has samples."""
    columns, rows = np.nonzero(heatmap.counts)
    height = heatmap.column_ns / heatmap.counts.shape[1]
    column_ns = heatmap.from_ns + columns * heatmap.column_ns
    schema = {"column_ns": "int64", "column": "string", "offset_ns": "int64", "samples": "int64"}
    batch = {
        "column_ns": column_ns,
        "column": [format_moment(at) for at in column_ns.tolist()],
        "offset_ns": (rows * height).astype(np.int64),
        "samples": heatmap.counts[columns, rows],
    }
    return ViewRows(schema, [batch])


def cores_rows(shares: CoreShares) -> ViewRows:
    """One row per core and interval that was read."""
    schema = {"time_ns": "int64", "time": "string", "cpu": "int64"}
    schema |= dict.fromkeys(STATES, "double")

    def batches() -> Iterator[ColumnData]:
        for row, cpu in enumerate(shares.cpus):
            known = np.flatnonzero(~np.isnan(shares.shares[STATES[0]][row]))
            times = shares.from_ns + known * shares.interval_ns
            yield {
                "time_ns": times,
                "time": [format_moment(at) for at in times.tolist()],
                "cpu": np.full(len(known), cpu),
                **{state: shares.shares[state][row][known] for state in STATES},
            }

    return ViewRows(schema, batches())


def event_rows(events: Iterable[Event]) -> ViewRows:
    """One row per event."""
    listed = list(events)
    details = [event.details.to_json() for event in listed]
    batch: ColumnData = {
        "time_ns": [event.time_ns for event in listed],
        "time": [format_moment(event.time_ns) for event in listed],
        "kind": [event.kind for event in listed],
        "subject": [event.subject for event in listed],
        "message": [event.message for event in listed],
        "cpu": [event.cpu for event in listed],
        "details": [json.dumps(each) if each else None for each in details],
    }
    schema = {"time_ns": "int64"} | dict.fromkeys(("time", "kind", "subject", "message"), "string")
    return ViewRows(schema | {"cpu": "int64", "details": "string"}, [batch])


def table_rows(
    recording: Recording, window: Window, table: Table, where: Mapping[str, str]
) -> ViewRows:
    """The rows of a table as recorded, on the wall clock; `where` says what columns must be."""
    others = [column for column in table.columns if column.name != "time_ns"]
    types = {column.name: "string" if column.type == "text" else column.type for column in others}

    def batches() -> Iterator[ColumnData]:
        for segment in recording.overlapping(window):
            content = segment.read(table.name)
            times = segment.wall_ns(content.column("time_ns").to_numpy())
            inside = (times >= window.from_ns) & (times < window.to_ns)
            for name, value in where.items():
                texts = map(str, content.column(name).to_pylist())
                inside &= np.fromiter((text == value for text in texts), bool, len(times))
            kept = np.flatnonzero(inside)
            kept = kept[np.argsort(times[kept], kind="stable")]
            taken = content.take(kept)
            yield {
                "time_ns": times[kept],
                "time": [format_moment(at) for at in times[kept].tolist()],
                **{name: taken.column(name).to_pylist() for name in types},
            }

    return ViewRows({"time_ns": "int64", "time": "string", **types}, batches())


def sample_rows(parts: Iterable[ChosenSamples]) -> ViewRows:
    """One row per sample with its whole stack, outermost first; segment by segment."""
    schema = {
        "time_ns": "int64",
        "cpu": "int64",
        "pid": "int64",
        "tid": "int64",
        "comm": "string",
        "mode": "string",
        "cgroup": "string",
        "stack": "string",
    }

    def batches() -> Iterator[ColumnData]:
        for part in parts:
            stacks = ExportedStacks()
            columns = part.columns
            (rows,), _ = count(part.row)
            paths = stacks.number_rows(columns, rows)
            names = [label(frame) for frame in stacks.frames]
            texts = np.array(
                [";".join([names[frame] for frame in path]) for path in stacks.paths], object
            )
            comms = np.array(columns.comms, object)
            cgroups = np.array([*columns.cgroups, None], object)  # -1: not known
            cgroup = columns.cgroup if part.chosen is None else columns.cgroup[part.chosen]
            for start in range(0, len(part.row), 100_000):
                some = slice(start, start + 100_000)
                row = part.row[some]
                yield {
                    "time_ns": part.time_ns[some],
                    "cpu": part.cpu[some],
                    "pid": part.pid[some],
                    "tid": part.tid[some],
                    "comm": comms[columns.profile_comm[row]],
                    "mode": np.where(columns.profile_kernel[row], "kernel", "user").astype(object),
                    "cgroup": cgroups[cgroup[some]],
                    "stack": texts[paths[row]],
                }

    return ViewRows(schema, batches())

"""pprof: a gzipped `profile.proto` (github.com/google/pprof, proto/profile.proto).

Samples are written segment by segment; the tables they refer to follow at the end,
which the wire format allows. Labels: comm, pid, cpu.
"""

from __future__ import annotations

import gzip
from typing import IO

from nodescope.exchange.export.stacks import ChosenSamples, ExportedStacks, Parts, count, label
from nodescope.wire.protobuf import bytes_field, number_field, packed_field, varint

# Fields of Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14


class _Strings:
    def __init__(self) -> None:
        self.numbers = {"": 0}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def write_pprof(parts: Parts, file: IO[bytes], from_ns: int, to_ns: int, comment: str = "") -> int:
    """Write all samples; returns how many."""
    strings = _Strings()
    stacks = ExportedStacks()
    total = 0
    known_period = 0
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
        for kind, unit in (("samples", "count"), ("cpu", "nanoseconds")):
            out.write(bytes_field(_SAMPLE_TYPE, _value_type(strings, kind, unit)))
        for part in parts:
            known_period = part.period_ns or known_period
            total += _write_samples(part, stacks, strings, out)
        _write_tables(stacks, strings, out)
        out.write(number_field(_TIME, from_ns) + number_field(_DURATION, to_ns - from_ns))
        out.write(bytes_field(_PERIOD_TYPE, _value_type(strings, "cpu", "nanoseconds")))
        out.write(number_field(_PERIOD, known_period))
        if comment:
            out.write(packed_field(_COMMENT, [strings.number(comment)]))
        # Where the sampling rate is not known, no time can be told: count instead.
        default = strings.number("cpu" if known_period else "samples")
        out.write(number_field(_DEFAULT_TYPE, default))
        for text in strings.numbers:
            out.write(bytes_field(_STRING, text.encode("utf-8", "backslashreplace")))
    return total


def _value_type(strings: _Strings, kind: str, unit: str) -> bytes:
    return number_field(1, strings.number(kind)) + number_field(2, strings.number(unit))


def _write_samples(
    part: ChosenSamples, stacks: ExportedStacks, strings: _Strings, out: gzip.GzipFile
) -> int:
    (rows, pids, cpus), counts = count(part.row, part.pid, part.cpu)
    numbers = stacks.number_rows(part.columns, rows)
    comm_key, pid_key, cpu_key = (varint(strings.number(key)) for key in ("comm", "pid", "cpu"))
    where: dict[int, bytes] = {}  # by row: locations and the comm's label
    cpu_labels: dict[int, bytes] = {}
    pid_labels: dict[int, bytes] = {}
    period = part.period_ns
    pending: list[bytes] = []
    for row, pid, cpu, number in zip(
        rows.tolist(), pids.tolist(), cpus.tolist(), counts.tolist(), strict=True
    ):
        head = where.get(row)
        if head is None:
            path = stacks.paths[numbers[row]]
            comm = b"\x08" + comm_key + number_field(2, strings.number(part.comm(row)))
            head = where[row] = packed_field(1, [frame + 1 for frame in reversed(path)]) + (
                bytes_field(3, comm)
            )
        if cpu not in cpu_labels:
            cpu_labels[cpu] = bytes_field(3, b"\x08" + cpu_key + number_field(3, cpu))
        if pid not in pid_labels:
            pid_labels[pid] = bytes_field(3, b"\x08" + pid_key + number_field(3, pid))
        values = packed_field(2, (number, number * period))
        pending.append(bytes_field(_SAMPLE, head + values + pid_labels[pid] + cpu_labels[cpu]))
        if len(pending) >= 4096:
            out.write(b"".join(pending))
            pending.clear()
    out.write(b"".join(pending))
    return int(counts.sum())


def _write_tables(stacks: ExportedStacks, strings: _Strings, out: gzip.GzipFile) -> None:
    mappings: dict[str, int] = {}
    for number, frame in enumerate(stacks.frames, 1):
        module, name, _ = frame
        mapping = mappings.setdefault(module, len(mappings) + 1)
        text = strings.number(label(frame))
        named = not name.startswith("+0x")
        function = number_field(1, number) + number_field(2, text) + number_field(3, text)
        function += number_field(4, strings.number(module))
        out.write(bytes_field(_FUNCTION, function))
        address = 0 if named else int(name[3:], 16) if name[3:].isalnum() else 0
        line = bytes_field(4, number_field(1, number))
        location = number_field(1, number) + number_field(2, mapping)
        out.write(bytes_field(_LOCATION, location + number_field(3, address) + line))
    for module, number in mappings.items():
        mapping_fields = number_field(1, number) + number_field(5, strings.number(module))
        out.write(bytes_field(_MAPPING, mapping_fields + number_field(7, 1)))

"""The tables of samples, and the list of every table of a recording.

Units, containers, NICs and the like are in `node_tables`, core times, heartbeats, gaps and
events in `recorder_tables`. A declaration drives the archive's
schema, `--json`, the API and the reference in `docs/archive.md`; nothing else may name a
column's type.

Times are `CLOCK_MONOTONIC` (they never step); the `heartbeats` of a segment
carry the clock pairs that turn them into wall times. Counters are stored raw,
as the kernel gives them; rates are derived on reading. Missing is null, never 0.
"""

from __future__ import annotations

from nodescope.records.node_tables import NODE_TABLES
from nodescope.records.recorder_tables import CoreRow, EventRow, Gap, HeartbeatRow
from nodescope.records.table import Column, ColumnKind, Table

NARROW = 1 / 8000  # of a segment's samples: paths and features with fewer are not rolled up
TRUNK_SAMPLES = 8  # the least a row of `trunk` has
FOLDED = "[folded]"  # module and name of the frame that stands for functions left out

SAMPLES = Table(
    "samples",
    "One row per sample: the core, the time, the thread, and its row of `profile`.",
    (
        Column("cpu", "int16", ColumnKind.KEY, "core the sample was taken on"),
        Column(
            "tick",
            "int64",
            ColumnKind.TIME,
            "time of the sample, in units of the segment's `tick_ns`",
            "ticks",
        ),
        Column("pid", "int32", ColumnKind.KEY, "process id, in the recorder's pid namespace"),
        Column(
            "thread", "int32", ColumnKind.KEY, "thread id minus process id: 0 is the main thread"
        ),
        Column(
            "cgroup",
            "text",
            ColumnKind.LABEL,
            "cgroup path; null if the kernel does not report it",
            nullable=True,
        ),
        Column("profile", "int32", ColumnKind.REFERENCE, "row of `profile`: comm, mode and stack"),
    ),
    order=("cpu", "tick"),
)

THREADS = Table(
    "threads",
    "The threads that were sampled, in the order of their first samples: of a segment with fewer "
    "than 200,000 samples, which are stored by thread. One whose comm or cgroup changed stands "
    "there again.",
    (
        Column(
            "step",
            "int32",
            ColumnKind.KEY,
            "process id minus that of the row above, zigzag: 0, -1, 1, -2, … are 0, 1, 2, 3, …",
        ),
        Column(
            "thread", "int32", ColumnKind.KEY, "thread id minus process id: 0 is the main thread"
        ),
        Column(
            "comm",
            "int32",
            ColumnKind.REFERENCE,
            "which of the different comms of `profile`, in the order they come there",
        ),
        Column(
            "cgroup",
            "text",
            ColumnKind.LABEL,
            "cgroup path; null if the kernel does not tell",
            nullable=True,
        ),
        Column(
            "often",
            "int32",
            ColumnKind.KEY,
            "the number, from 1, of a thread that samples refer to from afar; 0: none does; null: "
            "written by format 4, which did not number them",
            nullable=True,
        ),
    ),
)

FRAMES = Table(
    "frames",
    "The functions that occur in stacks. A frame's id is a hash of its row.",
    (
        Column(
            "module",
            "text",
            ColumnKind.LABEL,
            "path of the binary in the process, `[kernel]`, or a kernel module as `[name]`; "
            "`[folded]` for functions that the recorder left out of a rare stack",
        ),
        Column(
            "name",
            "string",
            ColumnKind.LABEL,
            "function, demangled; `+0x…` (file offset) if it has no known name",
        ),
        Column("kernel", "bool", ColumnKind.KEY, "true for kernel code"),
    ),
    order=("kernel", "module", "name"),
)

CALLS = Table(
    "calls",
    "Stacks of an open segment of format 1 or 2: a row is a stack whose leaf is `frame` and whose "
    "callers are the row `parent`. Since format 3 an open segment has `stacks`, like a sealed one.",
    (
        Column(
            "parent", "int32", ColumnKind.REFERENCE, "row of `calls`, a smaller one; -1 if none"
        ),
        Column("frame", "int32", ColumnKind.REFERENCE, "row of `frames`"),
    ),
)

STACKS = Table(
    "stacks",
    "Call stacks as a tree in depth-first order: a row is a stack whose leaf is `frame`; its "
    "caller is the last row above it that is one less deep. A subtree is a run of rows. An "
    "open segment has each stack whole, in the order of their first samples.",
    (
        Column("depth", "int16", ColumnKind.KEY, "number of callers: 0 at the outermost frame"),
        Column("frame", "int32", ColumnKind.REFERENCE, "row of `frames`"),
    ),
)

PROFILE = Table(
    "profile",
    "Roll-up of the segment: samples by process name, mode and stack. Rows with 2^n samples or "
    "more come before rows with fewer, so the head of the table has what ran most.",
    (
        Column("stack", "int32", ColumnKind.REFERENCE, "row of `stacks`"),
        Column("comm", "text", ColumnKind.LABEL, "the thread's name (`comm`) at that time"),
        Column("kernel", "bool", ColumnKind.KEY, "mode: true if the core ran kernel code"),
        Column(
            "samples", "int32", ColumnKind.COUNT, "number of samples; 0 until the segment is sealed"
        ),
        Column(
            "trunk",
            "int32",
            ColumnKind.REFERENCE,
            "innermost row of `trunk` on the path of the stack, -1 if there is none; null if the "
            "segment has no `trunk`",
            nullable=True,
        ),
    ),
)


def _wide_paths(name: str, meaning: str, *roots: Column) -> Table:
    """Return the table of a roll-up of wide paths, with the columns of their root."""
    return Table(
        name,
        f"Roll-up of a segment with many samples: {meaning}. A tree in depth-first order.",
        (
            *roots,
            Column("depth", "int16", ColumnKind.KEY, "0: the root itself; 1: the first function"),
            Column("frame", "int32", ColumnKind.REFERENCE, "row of `frames`; -1 at depth 0"),
            Column(
                "samples",
                "int32",
                ColumnKind.COUNT,
                "samples on that path and below it",
            ),
            Column(
                "id",
                "int64",
                ColumnKind.KEY,
                "hash of the root and the functions, the same in every segment and on every node; "
                "null in bundles and in earlier formats, where readers make it",
                nullable=True,
            ),
        ),
    )


_COMM = Column("comm", "text", ColumnKind.LABEL, "the threads' name")
PATHS = _wide_paths(
    "paths",
    "its wide paths of functions, those with at least 1/8000 of all samples; processes are the "
    "roots",
    _COMM,
)
CORE_PATHS = _wide_paths(
    "core_paths",
    "wide paths with cores as roots",
    Column("cpu", "int16", ColumnKind.KEY, "core"),
)
CGROUP_PATHS = _wide_paths(
    "cgroup_paths",
    "wide paths with cgroups as roots",
    Column("cgroup", "text", ColumnKind.LABEL, "cgroup path; null if not known", nullable=True),
)
MODE_PATHS = _wide_paths(
    "mode_paths",
    "wide paths of each mode, those with at least 1/8000 of its samples; processes are the roots",
    Column("kernel", "bool", ColumnKind.KEY, "mode: true if the core ran kernel code"),
    _COMM,
)
CALLER_PATHS = _wide_paths(
    "caller_paths",
    "wide paths from the innermost function to its callers; processes are the roots",
    _COMM,
)
WIDE_PATHS = (PATHS, CORE_PATHS, CGROUP_PATHS, MODE_PATHS, CALLER_PATHS)

TRUNK = Table(
    "trunk",
    "Roll-up of a segment with many `stacks`: those with at least 8 samples, laid out like "
    "`stacks`. It has every path that is wide in some thousand samples.",
    (
        Column("depth", "int16", ColumnKind.KEY, "number of callers: 0 at the outermost frame"),
        Column("frame", "int32", ColumnKind.REFERENCE, "row of `frames`"),
    ),
)

FUNCTIONS = Table(
    "functions",
    "Roll-up of a segment with many samples: samples by function.",
    (
        Column("frame", "int32", ColumnKind.REFERENCE, "row of `frames`"),
        Column(
            "samples",
            "int32",
            ColumnKind.COUNT,
            "samples with the function on their stack, each once",
        ),
        Column("own", "int32", ColumnKind.COUNT, "samples in the function itself"),
        Column(
            "id",
            "int64",
            ColumnKind.KEY,
            "hash of it, the same in every segment and on every node; null in bundles, where "
            "readers make it",
            nullable=True,
        ),
    ),
)

FEATURES = Table(
    "features",
    "Roll-up of a segment with many samples: what comparisons count. A row is a process name, "
    "a function of one, a function of the kernel whoever called it (no `comm`), or a process "
    "name on a core; those with less than 1/8000 of all samples are left out. A function without "
    "a name counts as its binary. Where the segment has a `trunk`, a function counts on paths "
    "with at least 1/8000 of all samples, and where it is the innermost one.",
    (
        Column("comm", "text", ColumnKind.LABEL, "the threads' name; null: all", nullable=True),
        Column("frame", "int32", ColumnKind.REFERENCE, "a row of `frames` of it; -1 if none"),
        Column("cpu", "int16", ColumnKind.KEY, "core; -1: all"),
        Column("samples", "int32", ColumnKind.COUNT, "samples that have it"),
        Column(
            "depth", "int64", ColumnKind.COUNT, "how many callers it has in these samples, summed"
        ),
        Column(
            "id", "int64", ColumnKind.KEY, "hash of it, the same in every segment and on every node"
        ),
    ),
)

FEATURE_SECONDS = Table(
    "feature_seconds",
    "Roll-up of a segment with many samples: those of its `features` with at least 1/1000 of all "
    "samples, by second.",
    (
        Column("feature", "int32", ColumnKind.REFERENCE, "row of `features`"),
        Column("second", "int64", ColumnKind.TIME, "monotonic second the samples fell in", "s"),
        Column("samples", "int32", ColumnKind.COUNT, "samples that have it"),
    ),
    order=("feature", "second"),
)

SECONDS = Table(
    "seconds",
    "Roll-up of the segment: samples by second and core.",
    (
        Column("cpu", "int16", ColumnKind.KEY, "core"),
        Column("second", "int64", ColumnKind.TIME, "monotonic second of the samples", "s"),
        Column("user", "int32", ColumnKind.COUNT, "samples in user mode"),
        Column("kernel", "int32", ColumnKind.COUNT, "samples in kernel mode"),
        Column(
            "folded",
            "int32",
            ColumnKind.COUNT,
            "samples, of both modes, with a folded stack: one with the frame `[folded]`; "
            "null in earlier versions, which folded nothing",
            nullable=True,
        ),
    ),
    order=("cpu", "second"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        SAMPLES,
        THREADS,
        FRAMES,
        CALLS,
        STACKS,
        PROFILE,
        *WIDE_PATHS,
        TRUNK,
        FUNCTIONS,
        FEATURES,
        FEATURE_SECONDS,
        SECONDS,
        CoreRow.table(),
        HeartbeatRow.table(),
        Gap.table(),
        EventRow.table(),
        *NODE_TABLES,
    )
}

# What the recorder writes while a segment is open, dictionaries before what
# refers to them: a reader that stops anywhere then finds no dangling reference.
OPEN_TABLES = (
    "frames",
    "stacks",
    "profile",
    "samples",
    "cores",
    "heartbeats",
    "gaps",
    "events",
    *(table.name for table in NODE_TABLES),
)

# Samples with the tables they point into, and what is summed up of them: one without the others
# means nothing.
SAMPLE_TABLES = (
    "samples",
    "threads",
    "profile",
    "stacks",
    "frames",
    *(table.name for table in WIDE_PATHS),
    "trunk",
    "functions",
    "features",
    "feature_seconds",
    "seconds",
)

# What a sealed segment may hold; a table without rows has no file.
SEALED_TABLES = (
    *SAMPLE_TABLES,
    "cores",
    "heartbeats",
    "gaps",
    "events",
    *(table.name for table in NODE_TABLES),
)

"""From a full table, quota or file system to how it filled, and to who fills it.

Who has most is seldom recorded. Tasks are counted by cgroup; of other tables the samples of
the functions that fill them say who was at it. Where neither tells, the chain ends and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.growth import (
    describe_growth,
    read_growth,
    read_largest,
    write_count,
)
from nodescope.diagnosis.links.mount_writer import NOBODYS, add_writer
from nodescope.diagnosis.links.open_files import add_open_files, describe_unknown_writer
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.story import Story
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.trouble_details import FullTableDetails
from nodescope.records.view import View, around
from nodescope.records.witness_tables import LimitRow

FILLING_NS = 5 * MINUTE_NS
FEWEST_SAMPLES = 10
LEAST_SHARE = 0.5
NEARLY = 0.8  # of a limit: with less used it was not reached
_READ_WHOLE = ("files_exhausted",)  # the node has one such limit, and its reading is that one
# By kind: the limit's name in `limits`, and functions of the kernel that use it up.
LIMIT_OF = {
    "conntrack_full": "conntrack", "files_exhausted": "files", "pid_exhausted": "threads",
    "tcp_memory": "tcp_memory", "fs_full": "disk", "ports_exhausted": "ports",
}  # fmt: skip
_FILLED_BY = {
    # The table's own functions, and those that open a connection, an entry for each.
    "conntrack_full": (
        "__nf_conntrack_alloc",
        "init_conntrack",
        "nf_conntrack_in",
        "__nf_conntrack_confirm",
        "tcp_v4_connect",
        "tcp_v6_connect",
    ),
    "files_exhausted": ("alloc_empty_file", "do_filp_open", "path_openat", "__sys_socket"),
    "pid_exhausted": ("copy_process", "kernel_clone", "_do_fork"),
    "ports_exhausted": ("__inet_hash_connect", "inet_hash_connect"),
    "tcp_memory": ("tcp_sendmsg", "tcp_sendmsg_locked"),
}
_OWNERS: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "cgroup": "cgroup",
}  # fmt: skip


def follow_table(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add how a table filled and who fills it; None if nobody can be named."""
    rows = _read_limit(case, symptom)
    if _contradicts(story, symptom, rows):
        return None
    _add_growth(story, symptom, rows)
    if symptom.kind == "fs_full":
        root = add_open_files(case, story, symptom, rows) or add_writer(case, story, symptom, rows)
    else:
        root = _most_tasks(case, story, symptom) if symptom.kind == "pid_exhausted" else None
        root = root or _fills(case, story, symptom)
    if root is None:
        story.lacks(
            "who fills it", _unknown(case, symptom),
            "look on the node while it lasts", View("events", around(symptom.time_ns, 60)),
        )  # fmt: skip
        return _end_at_mount(symptom) if symptom.kind == "fs_full" else None
    show = View("top", around(symptom.time_ns, 300), by="cgroup")
    steps: tuple[Action, ...] = ()
    if root.kind in _OWNERS:
        target = Target(_OWNERS[root.kind], root.name)
        steps = (Action("look", target, note="it uses most of it: does it leak?", view=show),)
    if symptom.kind == "fs_full":
        steps = (*steps, Action("free_space", Target("mount", symptom.subject)))
    return Ending(root, symptom.kind, "", steps)


def _end_at_mount(symptom: Symptom) -> Ending:
    """End at a full file system of which nobody knows who fills it."""
    steps = (Action("free_space", Target("mount", symptom.subject)),)
    return Ending(Root("file system", symptom.subject), symptom.kind, "", steps)


def _unknown(case: Case, symptom: Symptom) -> str:
    if symptom.kind == "fs_full":
        return describe_unknown_writer(case, symptom)
    if symptom.kind == "pid_exhausted" and not case.observed("cgroups"):
        return "tasks by cgroup were not recorded: nobody knows who has most"
    if not case.recorded("samples"):
        return "no samples were recorded: nobody knows who uses it"
    return "the samples of the minutes before name no one in particular who uses it"


def _read_limit(case: Case, symptom: Symptom) -> list[LimitRow]:
    """Return the readings of the limit in the hour before a report."""
    told = symptom.get(FullTableDetails)
    name = told.limit or LIMIT_OF.get(symptom.kind, "")
    before = Window(symptom.time_ns - LOOKBACK_NS, symptom.time_ns + SECOND_NS)
    return [
        row
        for row in case.rows(LimitRow, before)
        if row.name == name and (told.scope is None or row.scope == told.scope)
    ]


def _contradicts(story: Story, symptom: Symptom, rows: Sequence[LimitRow]) -> bool:
    """Decide whether the last reading shows room in what a line calls full, and say so."""
    last = rows[-1] if rows and symptom.kind in _READ_WHOLE else None
    if last is None or last.used is None or not last.most or last.used >= NEARLY * last.most:
        return False
    ago = format_duration(max(0, symptom.time_ns - last.time_ns))
    story.lacks(
        "a reading that agrees",
        f"the line says that the limit was reached, but {ago} before {last.used:,} of "
        f"{last.most:,} were used: it may have been reached for a moment, or the line is not true",
        show=View("table", around(symptom.time_ns, 900), table="limits",
                  where=(("name", last.name),)),
    )  # fmt: skip
    return True


def _add_growth(story: Story, symptom: Symptom, rows: Sequence[LimitRow]) -> None:
    growth = read_growth([(row.time_ns, row.used) for row in rows if row.used is not None])
    if growth is None:
        return
    name = rows[-1].name
    subject = symptom.subject if symptom.kind == "fs_full" else name
    most = next((row.most for row in reversed(rows) if row.most), None)
    of = f" of {most:,}" if most else ""
    story.links.append(
        Link(
            "limit", subject,
            f"{growth.last[1]:,}{of} are used{describe_growth(growth, write_count)}", 4.0,
            View("table", around(symptom.time_ns, 900), table="limits", where=(("name", name),)),
            "room in it at that time",
        )
    )  # fmt: skip


def _most_tasks(case: Case, story: Story, symptom: Symptom) -> Root | None:
    largest = read_largest(case, symptom.time_ns, lambda row: row.tasks)
    if largest is None or largest.share < LEAST_SHARE:
        return None
    root = owner_of_cgroup(case, largest.path, symptom.time_ns)
    said = largest.describe(case, symptom.time_ns, "tasks", write_count)
    story.links.append(
        Link(
            "owner", root.name, f"{said}; it is of {root.kind} {root.name}", largest.strength,
            View("table", around(symptom.time_ns, 600), table="cgroups",
                 where=(("cgroup", largest.path),)),
            "tasks that other cgroups have",
        )
    )  # fmt: skip
    return root


def _fills(case: Case, story: Story, symptom: Symptom) -> Root | None:
    """Name who was in the functions that fill the table, by the samples of the minutes before."""
    functions = frozenset(_FILLED_BY.get(symptom.kind, ()))
    before = Window(symptom.time_ns - FILLING_NS, symptom.time_ns + SECOND_NS)
    counts: Counter[str] = case.cgroups_inside(before, functions)
    total = counts.total()
    if total < FEWEST_SAMPLES:
        return None
    path, most = counts.most_common(1)[0]
    if path in NOBODYS or most < LEAST_SHARE * total:
        return None
    root = owner_of_cgroup(case, path, symptom.time_ns)
    story.links.append(
        Link(
            "owner", root.name,
            f"{most / total:.0%} of the {total:,} samples in functions that use it up are of "
            f"{root.kind} {root.name} ({path})", 3.0 * most / total,
            View("top", around(symptom.time_ns, 300), by="cgroup"),
            "a user that is seldom seen in these functions",
        )
    )  # fmt: skip
    return root

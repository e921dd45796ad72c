"""Steps that free zombie memory cgroups by the cheapest means that suffices on this kernel.

Page cache: reclaim below the one parent. Files in memory (tmpfs): deleting them, by consent for
each folder, because nobody but their owner knows whether they are needed. What neither frees:
the whole node's page cache (`drop_caches`), last, because it stalls. What nothing frees is
said, with what a reboot would clear.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from nodescope.errors import SourceError
from nodescope.judgement.zombie_report import Report, assess
from nodescope.quantities import format_bytes
from nodescope.records.action import Target
from nodescope.remedy.actions.delete_files import is_system_state
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Predicted
from nodescope.remedy.steps.expansion import Expansion
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy, find_memory_hierarchy
from nodescope.sources.memory_cgroups.parents import Parent
from nodescope.sources.memory_cgroups.pins import PinningFile, PinSearch, find_pinning_files
from nodescope.sources.memory_cgroups.survey import Look, take_look

SEARCH_S = 20.0
_LEAST = 20  # zombies of a parent: fewer are on every node
_WORTH = 0.1  # of all zombies: reclaiming where few are would cost others more than it frees
_FEW = 0.05  # of the files: a folder with fewer is not what leaks
_PINS = 0.05  # of the bytes that a parent's zombies hold: a smaller kind does not pin them
_MOST_RECLAIMED = 256 << 20  # of memory below a parent: so much is gone through in a moment
_TIMES_HELD = 4
_SURE = 0.05  # a handful lingers, and estimates of a parent are that good


def expand_free_zombies(node: NodeAccess) -> Expansion:
    """Return the steps that free the zombies of the node as it is now."""
    hierarchy = find_memory_hierarchy(node.places)
    look = take_look(hierarchy)
    dying = look.count.dying
    if dying is None:
        return Expansion(cannot=("zombies cannot be counted here, so none are freed",))
    worth = max(_LEAST, _WORTH * dying)
    main = [each for each in look.parents if (each.dying or 0) >= worth]
    if not main:
        return Expansion(cannot=(f"no parent has many of the {dying:,} zombies: nothing to free",))
    cached = [each for each in main if _is_pinned_by(each, "file")]
    busy = {each.path: why for each in cached if (why := _why_not_reclaim(each, look))}
    reclaimed = [each for each in cached if each.path not in busy and _can_reclaim(each, look)]
    in_memory = [each for each in main if _is_pinned_by(each, "shmem")]
    steps = [_reclaim(each, look) for each in reclaimed]
    deletions = _deletions(hierarchy, in_memory, {each.path: each.dying or 0 for each in main})
    elsewhere = [each for each in cached if each not in reclaimed and each.path not in busy]
    if elsewhere:
        steps.append(_drop_caches(elsewhere))
    untouched = [each for each in main if not each.held]
    cannot = [
        *deletions.cannot,
        *busy.values(),
        *_describe_untouched(untouched),
        _describe_reboot(assess(look)),
    ]
    ordered = (*(step for step in steps if step.kind == "reclaim_cgroup"), *deletions.steps,
               *(step for step in steps if step.kind != "reclaim_cgroup"))  # fmt: skip
    return Expansion(ordered, cannot=tuple(cannot))


def _is_pinned_by(parent: Parent, kind: str) -> bool:
    total = sum(parent.held.values())
    return parent.held.get(kind, 0) > _PINS * total if total else False


def _can_reclaim(parent: Parent, look: Look) -> bool:
    return look.reclaim_file is not None and parent.path != "/"


def _why_not_reclaim(parent: Parent, look: Look) -> str:
    """Return why reclaim below a parent would cost the living more than it frees; else nothing."""
    name = "memory.current" if look.hierarchy.is_v2 else "memory.usage_in_bytes"
    try:
        used = int(read_file(f"{look.hierarchy.directory(parent.path)}/{name}"))
    except (SourceError, ValueError):
        return ""
    held = sum(parent.held.values())
    if used <= _MOST_RECLAIMED or used <= _TIMES_HELD * held:
        return ""
    return (
        f"zombies below {parent.path} are left: they hold {format_bytes(held)} there, and reclaim "
        f"would go through {format_bytes(used)} that others use, for seconds to minutes"
    )


def _predict(count: int, because: str, *, certain: bool) -> Predicted:
    low = count * (1 - _SURE) if certain else 0.0
    return Predicted("zombies", count, low, count * (1 + _SURE), because)


def _reclaim(parent: Parent, look: Look) -> PlanStep:
    file = look.reclaim_file or ""
    amount = "0" if file == "memory.force_empty" else str(parent.held.get("file", 0))
    path = f"{look.hierarchy.directory(parent.path)}/{file}"
    alone = not _is_pinned_by(parent, "shmem")
    because = (
        f"{parent.dying:,} zombies below it hold page cache"
        + ("" if alone else ", some of them files in memory as well, which this does not free")
    )  # fmt: skip
    return PlanStep(
        "reclaim_cgroup", Target("cgroup", parent.path),
        "its zombies are pinned by page cache, which the kernel can take back",
        {"file": file, "amount": amount},
        (f"page cache below {parent.path}: taken back, also what lives there uses",),
        ("tee", path), "never", (_predict(parent.dying or 0, because, certain=alone),),
    )  # fmt: skip


def _drop_caches(parents: Sequence[Parent]) -> PlanStep:
    count = sum(each.dying or 0 for each in parents)
    stall = "every read goes to disk again, and the node may stall for seconds"
    because = f"{count:,} zombies hold page cache where no single parent can reclaim it"
    return PlanStep(
        "drop_caches", Target("node"), "nothing smaller frees them on this kernel",
        {"value": "1"},
        (f"page cache of the whole node: dropped; {stall}",),
        ("sysctl", "-w", "vm.drop_caches=1"), "never",
        (_predict(count, because, certain=False),),
    )  # fmt: skip


# -- files in memory -------------------------------------------------------------------


def _deletions(
    hierarchy: MemoryHierarchy, parents: Sequence[Parent], dying: Mapping[str, int]
) -> Expansion:
    if not parents:
        return Expansion()
    try:
        search = find_pinning_files(hierarchy, parents, (), SEARCH_S)
    except SourceError as error:
        return Expansion(cannot=(f"the files that pin zombies could not be searched for: {error}",))
    wanted = {each.path for each in parents}
    pinning = [each for each in search.files if each.parent in wanted and each.kind == "shmem"]
    files = [each for each in pinning if not is_system_state(each.path)]
    by_folder: dict[str, list[PinningFile]] = defaultdict(list)
    for file in files:
        by_folder[_folder_of(file)].append(file)
    worth = max(_LEAST, _FEW * len(files))
    many = {folder: listed for folder, listed in by_folder.items() if len(listed) >= worth}
    steps = [_delete(folder, listed, dying) for folder, listed in sorted(many.items())]
    cannot = _describe_held(search, wanted)
    if len(pinning) > len(files):
        kept = f"{len(pinning) - len(files):,} files of systemd, udev or a runtime below /run"
        cannot = (*cannot, f"{kept} pin zombies; they are state in use, and never deleted")
    if few := len(files) - sum(map(len, many.values())):
        cannot = (*cannot, f"{few:,} other files in memory pin a few zombies; they are left alone")
    return Expansion(tuple(steps), cannot=cannot)


def _folder_of(file: PinningFile) -> str:
    """Return the folder that consent is asked for: the one right below the mount of tmpfs."""
    return str(PurePosixPath(file.path).parent)


def _delete(folder: str, files: Sequence[PinningFile], dying: Mapping[str, int]) -> PlanStep:
    parents = sorted({each.parent for each in files})
    most = sum(dying.get(path, 0) for path in parents)
    count = min(len(files), most) if most else len(files)
    because = f"{len(files):,} files there have pages of zombies below {', '.join(parents)}"
    return PlanStep(
        "delete_files", Target("mount", folder),
        "files in memory pin zombies; only deleting them lets the kernel free these",
        {"files": json.dumps(name_files(files), sort_keys=True)},
        (f"{len(files):,} files in {folder}: deleted, their content is lost",
         "one that a process uses then, or that was replaced since, is left"),
        ("nodescope", "zombies", "--files", folder), "never",
        (_predict(count, because, certain=True),),
        consent=folder,
    )  # fmt: skip


def name_files(files: Sequence[PinningFile]) -> dict[str, str]:
    """Return the device and inode of each file by its path, as `delete_files` takes them."""
    return {
        each.path: f"{each.identity[0]}:{each.identity[1]}"
        for each in files
        if each.identity is not None
    }


def _describe_held(search: PinSearch, parents: set[str]) -> tuple[str, ...]:
    holders = sorted({
        f"{each.holder_comm or 'a process'} ({each.holder_pid})"
        for each in search.files
        if each.kind == "deleted" and each.parent in parents and each.holder_pid is not None
    })  # fmt: skip
    said = []
    if holders:
        named = ", ".join(holders[:5]) + (f" and {len(holders) - 5} more" if holders[5:] else "")
        said.append(f"deleted files that are still open pin zombies until {named} closes them")
    if not search.complete:
        said.append(
            f"the search for files that pin zombies ended after {SEARCH_S:.0f} s: there are more"
        )
    return tuple(said)


def _describe_untouched(parents: Sequence[Parent]) -> list[str]:
    return [
        f"what pins ≈{each.dying or 0:,} zombies below {each.path} cannot be told on this kernel"
        for each in parents
    ]


def _describe_reboot(report: Report) -> str:
    dying = report.reading.dying or 0
    per_hour = report.per_hour_since_boot
    back = ""
    if per_hour and per_hour > 0:
        hours = report.verdict.warn_at / per_hour
        left = f"{hours / 24:.0f} days" if hours >= 48 else f"{max(1, hours):.0f} h"
        back = (
            f"; if their source stayed, {report.verdict.warn_at:,} would be back after about "
            f"{left}, by the {per_hour:,.0f} an hour since boot"
        )
    return f"a reboot clears all {dying:,} zombies{back}"

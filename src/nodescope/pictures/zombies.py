"""`nodescope zombies` as text; `zombie_document` has it as JSON.

Imports neither numpy nor Arrow: the command answers in less time than they take.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nodescope.pictures.text import columns_of, fit_end, pad, visible
from nodescope.quantities import MINUTE_NS, format_bytes, format_count, format_duration
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.judgement.cgroup_churn import Churn
    from nodescope.judgement.zombie_reading import ZombieReading
    from nodescope.judgement.zombie_report import Report
    from nodescope.judgement.zombies import Advice
    from nodescope.sources.memory_cgroups.parents import Parent
    from nodescope.sources.memory_cgroups.pins import PinningFile

_FEW = 5
_RATE_NS = MINUTE_NS  # of a shorter time a rate per hour says nothing
_MANY = 40
_NAMED_FILES = 3  # of a folder
_PATH_WIDTH = 56
_BESIDE_PATH = 45  # columns: how many, and what they hold
_HANG = len("trend   ")


# -- text ------------------------------------------------------------------


def render_report(report: Report, *, all_parents: bool = False, width: int = 0) -> str:
    """Return the verdict, the numbers, who and what to do; `width` 0 does not wrap."""
    sections = [
        [_headline(report)],
        _numbers(report),
        _parents(report, all_parents, width),
        _makers(report),
        _files(report),
        _pages(report),
        _advice(report),
        _not_observed(report),
    ]
    parts = ((wrapped for line in lines for wrapped in _wrapped(line, width))
             for lines in sections if lines)  # fmt: skip
    return "\n\n".join("\n".join(lines) for lines in parts)


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line in the width of a terminal; a command to be copied stays in one."""
    if not width or columns_of(line) <= width or line.lstrip().startswith("$ "):
        return [line]
    hang = _HANG if line.startswith(("trend", "cost")) else len(line) - len(line.lstrip()) + 2
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=" " * hang,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _headline(report: Report) -> str:
    verdict, count = report.verdict, report.reading
    if count.dying is None:
        return f"UNKNOWN: {verdict.reasons[0]}"
    number = format_count(count.dying, "dying memory cgroup")
    if verdict.level == "healthy":
        word = "none" if count.dying == 0 else number
        return f"HEALTHY: {word} (removed, but still held); a warning from {verdict.warn_at:,}"
    others = [reason for reason in verdict.reasons if not reason.endswith(" dying")]
    more = f"; {'; '.join(others)}" if others else ""
    limits = f"warning from {verdict.warn_at:,}, critical from {verdict.critical_at:,}"
    return f"{verdict.level.upper()}: {number}: removed, but still held ({limits}){more}"


def _numbers(report: Report) -> list[str]:
    count = report.reading
    tracked, seen, dying = (
        "not known" if number is None else f"{number:,}"
        for number in (count.tracked, count.visible, count.dying)
    )
    version = {"v1": "cgroup v1", "v2": "cgroup v2", "hybrid": "hybrid, memory on cgroup v1"}
    where = version.get(count.version, count.version)
    if count.mount is not None:
        where += f", {count.mount}"
    if count.read_ns is not None:
        where += f", as recorded at {format_moment(count.read_ns)}"
    return [
        f"tracked {tracked}, visible {seen}, dying {dying}   ({where})",
        f"trend   {_trend(report)}",
        f"cost    {_cost(report)}",
    ]


def _trend(report: Report) -> str:
    trend = report.trend
    if trend is None:
        return "not known"
    parts = []
    where = "recorded" if report.recorded else "two looks"
    change = trend.last - trend.first
    parts.append(f"{change:+,} in {format_duration(trend.over_ns)} ({where})")
    # A rate over a rise and a fall would be that of neither.
    if report.recorded and trend.over_ns >= _RATE_NS and report.nature != "cache":
        parts.append(f"{trend.per_hour:+,.0f} per hour")
    if report.to_critical_ns:
        parts.append(f"critical in {format_duration(report.to_critical_ns)}")
    if report.nature != "unknown":
        meanings = {"leak": "a leak", "cache": "many were freed in this time"}
        parts.append(meanings[report.nature])
    if report.per_hour_since_boot is not None and report.reading.uptime_ns:
        uptime = format_duration(report.reading.uptime_ns)
        average = _rate(report.per_hour_since_boot)
        parts.append(f"on average {average} per hour since boot ({uptime})")
    return "; ".join(parts)


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _cost(report: Report) -> str:
    parts = []
    walk, verdict = report.reading.walk, report.verdict
    if walk is not None:
        name = walk.file.rpartition("/")[2]
        kind = (
            "reads walk all of them on this kernel"
            if verdict.walks
            else "reads are flat; reclaim pays, visiting each"
        )
        parts.append(f"{name} took {format_duration(walk.took_ns)}: {kind}")
    if verdict.overhead_bytes:
        memory = report.reading.memory_bytes
        share = f" ({verdict.overhead_bytes / memory:.1%} of memory)" if memory else ""
        parts.append(f"≈ {format_bytes(verdict.overhead_bytes)} of kernel memory{share}")
    return "; ".join(parts) or ("not recorded" if report.not_observed else "nothing")


def _parents(report: Report, every: bool, terminal: int) -> list[str]:
    parents = report.reading.parents
    if not parents:
        return []
    shown = parents if every else parents[:_FEW]
    most = max(terminal - _BESIDE_PATH, 20) if terminal else _PATH_WIDTH
    width = min(max(columns_of(visible(each.path)) for each in shown), _PATH_WIDTH, most)
    lines = [*_parents_read(report.reading), f"{'dying':>9}  {pad('parent', width)}  held by them"]
    for parent in shown:
        name = pad(fit_end(visible(parent.path), width), width)
        lines.append(f"{_count(parent):>9}  {name}  {_held(parent)}{_bounds(parent)}".rstrip())
    if len(parents) > len(shown):
        lines.append(f"{'':>9}  … {len(parents) - len(shown)} more: --parents")
    if any(not parent.exact and parent.dying is not None for parent in shown):
        lines.append("  ≈: cgroup v1 counts them only together; shared out by what they cost")
    return lines


def _parents_read(reading: ZombieReading) -> list[str]:
    """Return when the parents were read, where that is another time than the counts'."""
    read_ns, counted_ns = reading.parents_read_ns, reading.read_ns
    if read_ns is None or counted_ns is None:
        return []
    line = f"parents as recorded at {format_moment(read_ns)}"
    if read_ns == counted_ns:
        return [line]
    before = format_duration(abs(counted_ns - read_ns))
    way = "before" if read_ns < counted_ns else "after"
    return [f"{line}, {before} {way} the counts above, so the sums may differ"]


def _count(parent: Parent) -> str:
    if parent.dying is None:
        return "?"
    return f"{'' if parent.exact else '≈'}{parent.dying:,}"


def _bounds(parent: Parent) -> str:
    """Where the number is no more than what the others cannot have, what it may be."""
    if parent.evidence != "rest" or parent.least is None or parent.least == parent.most:
        return ""
    return f" (an estimate: between {parent.least:,} and {parent.most:,} zombies)"


def _held(parent: Parent) -> str:
    names = {"shmem": "tmpfs", "file": "page cache", "anon": "anonymous", "swap": "swap"}
    kinds = sorted(parent.held.items(), key=lambda item: -item[1])
    text = ", ".join(f"{names[kind]} {format_bytes(amount)}" for kind, amount in kinds)
    if not text:
        return "not known: its own memory is in the same counters" if parent.occupied else ""
    return text


def _makers(report: Report) -> list[str]:
    heard = report.heard
    if heard is None:
        return []
    leaving = [maker for maker in report.makers if maker.unreleased]
    if not report.makers:
        return [f"In {_heard_for(report)} nobody made or removed a memory cgroup."]
    lines = [f"Who made cgroups in {_heard_for(report)}:"]
    if heard.way == "scan":
        lines[0] += " (without tracepoints: makers and releases are not known)"
    shown = (leaving or report.makers)[:_MANY]
    lines += [f"  {_maker(maker, heard.seconds)}" for maker in shown]
    settled = all(maker.settled >= maker.removed for maker in report.makers)
    if not leaving and settled and heard.way == "tracepoints":
        lines.append("  None of them was left behind: what was removed was released.")
    if heard.lost:
        lines.append(f"  {heard.lost:,} events came too fast and were lost.")
    return lines


def _heard_for(report: Report) -> str:
    """How long was listened, or how much of the hour before was recorded."""
    assert report.heard is not None
    if report.reading.read_ns is None:
        return f"{report.heard.seconds:g} s"
    return f"the {format_duration(round(report.heard.seconds * 1e9))} before"


def _maker(maker: Churn, seconds: float) -> str:
    who = visible(maker.maker) if maker.maker else "unknown"
    if len(maker.pids) == 1:
        who += f" (pid {next(iter(maker.pids))})"
    elif maker.pids:
        who += f" ({len(maker.pids)} processes)"
    where = visible(f"{maker.parent.rstrip('/')}/{maker.pattern}")
    rate = max(maker.made, maker.removed) * 60 / seconds if seconds else 0.0
    ran = ", ".join(visible(name) for name, _ in maker.ran[:3])
    text = f"{who} makes {where}: {rate:,.0f} per minute, "
    if maker.unreleased is None:
        text += f"{maker.removed:,} removed"
    elif not maker.unreleased and not maker.settled:
        text += f"{maker.removed:,} removed, too lately to know whether they are released"
    elif maker.unreleased <= maker.settled:
        text += f"{maker.unreleased:,} of {maker.settled:,} removed still held"
    else:  # also of the time before
        text += f"{maker.removed:,} removed, {maker.unreleased:,} still held in all"
    return f"{text}; ran {ran}" if ran else text


def _files(report: Report) -> list[str]:
    search = report.search
    if search is None:
        return []
    lines = [f"Files that pin them ({search.looked_at:,} looked at):"]
    folders = group_files(search.files)
    for (parent, folder, kind), files in folders[:_MANY]:
        amount = format_bytes(sum(file.bytes for file in files))
        lines.append(
            f"  {visible(parent)}: {amount} of {_KINDS[kind]} "
            f"in {format_count(len(files), 'file')} in {visible(folder)}"
        )
        named = [_named(file) for file in files[:_NAMED_FILES]]
        if len(files) > len(named):
            named.append("…")
        lines.append(f"      {', '.join(named)}")
    if len(folders) > _MANY:
        lines.append(f"  … in {len(folders) - _MANY} more folders: --json has all")
    if not folders:
        lines.append("  none found")
    if not search.complete or search.not_searched:
        rest = ", ".join(map(visible, search.not_searched))
        lines.append(
            "  The time was up before all was searched" + (f": not {rest}" if rest else "")
        )
    return lines


_KINDS = {"shmem": "tmpfs", "file": "page cache", "deleted": "deleted files"}


def _named(file: PinningFile) -> str:
    name = visible(file.path.rpartition("/")[2])
    if file.holder_pid is None:
        return name
    return f"{name} held open by {visible(file.holder_comm or '?')} (pid {file.holder_pid})"


def group_files(
    files: list[PinningFile],
) -> list[tuple[tuple[str, str, str], list[PinningFile]]]:
    """Files by parent, folder and kind; those of most bytes first."""
    groups: dict[tuple[str, str, str], list[PinningFile]] = {}
    for file in files:
        folder = file.path.rpartition("/")[0] or "/"
        groups.setdefault((file.parent, folder, file.kind), []).append(file)
    return sorted(groups.items(), key=lambda item: -sum(file.bytes for file in item[1]))


def _pages(report: Report) -> list[str]:
    if report.pages is None:
        return []
    way = "all pages" if report.pages_one_in == 1 else f"one block in {report.pages_one_in}"
    lines = [f"Pages by the live cgroup that pays, its dying children included ({way}):"]
    ranked = sorted(report.pages.items(), key=lambda item: -sum(item[1].values()))
    for path, kinds in ranked[:_MANY]:
        parts = sorted(kinds.items(), key=lambda item: -item[1])
        text = ", ".join(f"{kind} {format_bytes(amount)}" for kind, amount in parts)
        lines.append(f"  {visible(path)}: {text}")
    return lines


def _advice(report: Report) -> list[str]:
    if not report.advice or report.verdict.level == "healthy":
        return []
    lines = ["What frees them on this kernel, in this order:"]
    lines += [line for each in report.advice if each.helps for line in _sentence(each)]
    useless = [line for each in report.advice if not each.helps for line in _sentence(each)]
    return [*lines, "What does not:", *useless] if useless else lines


def _not_observed(report: Report) -> list[str]:
    """Return what was not recorded, so that the verdict does not rest on it."""
    return [f"Not recorded: {', '.join(report.not_observed)}."] if report.not_observed else []


def _sentence(advice: Advice) -> list[str]:
    where = f"{visible(advice.parent)}: " if advice.parent else ""
    command = [f"    $ {visible(advice.command)}"] if advice.command else []
    return [f"  - {where}{advice.text}", *command]

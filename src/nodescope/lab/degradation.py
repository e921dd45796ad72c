"""Recordings with a part taken away, and statements that must not follow from that.

Absence is not evidence: whatever is removed, a diagnosis may say less, and never more. A
removal takes a table, some time of a table, events of a kind, a core, or whole parts; what a
recorder would have noted as a gap is noted. `find_violations` compares two diagnoses: no root
that the whole recording does not know, no link that got stronger, nothing ruled out anew, and
nothing said to be absent that was not observed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow.compute as pc

from nodescope.archive.schema import ArrowTable
from nodescope.diagnosis.finding import Absence, Chain, Diagnosis, Finding, Symptom
from nodescope.judgement.pegged_cores import TIED_NS, find_pegged_cores
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import MemoryPart
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import Gap

TOLERANCE = 0.02  # of a confidence
EDGE_NS = 2 * SECOND_NS  # readings are a second apart: the ends of a time are seen in part
EVEN = 0.5
STRENGTH = 0.3  # nats: of a link that is seen with fewer samples
_KEPT = ("heartbeats", "source_costs", "gaps")
_OF_SAMPLES = (
    "samples", "seconds", "profile", "functions", "function_paths", "features", "feature_counts",
    "stacks", "frames", "paths", "cgroup_paths",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Degraded:
    """A recording without a part of it, and what that was."""

    recording: Recording
    said: str
    tables: frozenset[str]  # that lack something
    whole: Recording


def degrade(recording: Recording, seed: int) -> Degraded:
    """Return a recording (of parts in memory) with a random part of it taken away."""
    random = Random(seed)
    way = random.choice(("table", "table", "time", "time", "kinds", "core", "parts"))
    tables = sorted({name for part in recording.parts for name in part.description.tables})
    chosen = [name for name in tables if name not in (*_KEPT, *_OF_SAMPLES[1:])]
    if way == "parts" and len(recording.parts) > 1:
        gone = random.randrange(len(recording.parts))
        parts = [part for number, part in enumerate(recording.parts) if number != gone]
        return Degraded(
            Recording(parts, recording.node), f"part {gone}", frozenset(tables), recording
        )
    if way == "kinds" and "events" in tables:
        return _without_kinds(recording, random)
    if way == "core" and "cores" in tables:
        return _without_core(recording, random)
    table = random.choice(chosen)
    if way != "time" or table == "samples":
        names = _OF_SAMPLES if table == "samples" else (table,)
        made = [_drop(part, names) for part in recording.parts]
        made_of = Recording(made, recording.node)
        return Degraded(made_of, f"table {table}", frozenset(names), recording)
    return _without_time(recording, table, random)


def _without_kinds(recording: Recording, random: Random) -> Degraded:
    kinds = sorted(
        {
            kind
            for part in recording.parts
            if "events" in part.description.tables
            for kind in part.read("events", ["kind"]).column("kind").to_pylist()
        }
    )
    gone = set(random.sample(kinds, max(1, len(kinds) // random.choice((1, 2, 4)))))
    made = [
        _filter(part, "events", lambda table: [k not in gone for k in _texts(table, "kind")])
        for part in recording.parts
    ]
    said = f"events {', '.join(sorted(gone))}"
    return Degraded(Recording(made, recording.node), said, frozenset(["events"]), recording)


def _without_core(recording: Recording, random: Random) -> Degraded:
    cpus = sorted(
        {
            cpu
            for part in recording.parts
            if "cores" in part.description.tables
            for cpu in pc.unique(part.read("cores", ["cpu"]).column("cpu")).to_pylist()
        }
    )
    gone = random.choice(cpus)
    parts = list(recording.parts)
    for name in ("cores", "softnet"):
        parts = [
            _filter(part, name, lambda table: [c != gone for c in _texts(table, "cpu")])
            for part in parts
        ]
    said = f"core {gone} of cores and softnet"
    tables = frozenset(["cores", "softnet"])
    return Degraded(Recording(parts, recording.node), said, tables, recording)


def _without_time(recording: Recording, table: str, random: Random) -> Degraded:
    """Take some time of a table away, and note the gap as a recorder would."""
    from_ns, to_ns = recording.extent.from_ns, recording.extent.to_ns
    start = random.randrange(from_ns, to_ns)
    hole = Window(start, min(to_ns, start + random.randrange((to_ns - from_ns) // 2 + 1)))
    made = []
    for part in recording.parts:
        without = _filter(part, table, lambda rows, part=part: _outside(part, rows, hole))
        gap = Gap(from_ns=hole.from_ns, to_ns=hole.to_ns, source=table, reason="removed")
        described = replace(without.description, gaps=(*without.description.gaps, gap))
        made.append(MemoryPart(described, _tables(without)))
    length_s = hole.length_ns / 1e9
    said = f"{length_s:.0f} s of {table} from {(hole.from_ns - from_ns) / 1e9:.0f} s on"
    return Degraded(Recording(made, recording.node), said, frozenset([table]), recording)


def _outside(part: MemoryPart, rows: ArrowTable, hole: Window) -> list[bool]:
    if "time_ns" not in rows.schema.names:
        return [True] * len(rows)
    return [not hole.holds(part.wall_ns(time_ns)) for time_ns in rows.column("time_ns").to_pylist()]


def _texts(table: ArrowTable, column: str) -> list[Any]:
    values: list[Any] = table.column(column).to_pylist()
    return values


def _tables(part: Any) -> Mapping[str, ArrowTable]:
    return {name: part.read(name) for name in part.description.tables}


def _drop(part: Any, names: tuple[str, ...]) -> MemoryPart:
    tables = {name: table for name, table in _tables(part).items() if name not in names}
    described = {name: extent for name, extent in part.description.tables.items() if name in tables}
    return MemoryPart(replace(part.description, tables=described), tables)


def _filter(part: Any, name: str, keep: Any) -> MemoryPart:
    if name not in part.description.tables:
        return MemoryPart(part.description, _tables(part))
    tables = dict(_tables(part))
    left = tables[name].filter(keep(tables[name]))
    if not len(left):
        return _drop(part, (name,))
    tables[name] = left
    return MemoryPart(part.description, tables)


# -- what may not follow -----------------------------------------------------------


def find_violations(whole: Diagnosis, less: Diagnosis, degraded: Degraded) -> Iterator[str]:
    """Yield the statements of `less` that are stronger than those of `whole`, in words."""
    known = {name for finding in whole.findings for name in _names(finding)}
    for finding in less.findings:
        yield from _new_symptom(whole, finding, degraded)
        for chain in finding.chains:
            if chain.explains and not _is_known(whole, chain, known, degraded):
                yield f"a root of its own: {chain.root.title} ({chain.confidence:.2f})"
            yield from _stronger(whole, finding, chain)
        yield from _ruled_out(whole, finding, known)
    yield from _new_conditions(whole, less)
    yield from _unseen(whole, less, degraded)


def _new_symptom(whole: Diagnosis, finding: Finding, degraded: Degraded) -> Iterator[str]:
    """Yield a symptom that the whole recording does not have.

    A core that was pegged is one without samples, too: with them it may be known that many
    shared it. Then it must be pegged in the whole recording.
    """
    symptom = finding.symptom
    known = {
        (each.kind, each.subject)
        for other in whole.findings
        for each in (other.symptom, *other.also)
    }
    if (symptom.kind, symptom.subject) in known or _was_pegged(degraded, symptom.cpu, symptom):
        return
    yield f"an incident of its own: {symptom.kind} {symptom.subject}"


def _was_pegged(degraded: Degraded, cpu: int | None, symptom: Symptom | None = None) -> bool:
    if symptom is not None and symptom.kind != "core_held":
        return False
    whole = degraded.whole
    window = Window(whole.extent.from_ns, whole.extent.to_ns)
    pegged = find_pegged_cores(whole.core_readings(window), window, TIED_NS)
    near = symptom.time_ns if symptom is not None else None
    return any(
        each.cpu == cpu and (near is None or each.window.widened(SECOND_NS).holds(near))
        for each in pegged
    )


def _is_known(whole: Diagnosis, chain: Chain, known: set[str], degraded: Degraded) -> bool:
    if any(chain.root.name in name for name in known):
        return True
    # Who was ruled out by what is removed is a suspect again, and no surer than even.
    cleared = {each.name for finding in whole.findings for each in finding.ruled_out}
    if chain.root.title in cleared and chain.confidence <= EVEN + TOLERANCE:
        return True
    # A core that was measured as pegged is a place and no blame: who shared it may be removed.
    cpu = chain.root.name.removeprefix("cpu")
    return chain.root.kind == "core" and cpu.isdecimal() and _was_pegged(degraded, int(cpu))


def _names(finding: Finding) -> Iterator[str]:
    """Yield whom a finding names on its way: a chain that ends earlier ends at one of these."""
    for chain in finding.chains:
        yield chain.root.name
        yield from (link.subject for link in chain.links)
    for symptom in (finding.symptom, *finding.also):
        yield symptom.subject


def _stronger(whole: Diagnosis, finding: Finding, chain: Chain) -> Iterator[str]:
    """Yield links that got stronger, and a confidence that rose."""
    same = [
        (other, each)
        for other in whole.findings
        for each in other.chains
        if each.root == chain.root
    ]
    if not same:
        return
    known = {(link.kind, link.subject): link.strength for _, each in same for link in each.links}
    for link in chain.links:
        before = known.get((link.kind, link.subject))
        if before is not None and link.strength > before + STRENGTH:
            yield f"link {link.kind} {link.subject}: {before:.2f} became {link.strength:.2f}"
    most = max(_worth(other, each, finding, chain) for other, each in same)
    if chain.confidence > most + TOLERANCE:
        yield f"confidence of {chain.root.title}: {most:.2f} became {chain.confidence:.2f}"


def _worth(other: Finding, each: Chain, finding: Finding, chain: Chain) -> float:
    """Return the most that a chain may be worth, by one of the whole recording.

    The same claim is worth no more than before. One that claims less (no mechanism, or an
    earlier symptom of the incident) is worth as much as that part was: fewer things must hold.
    """
    one, two = other.symptom, finding.symptom
    if (one.kind, one.subject, each.mechanism) == (two.kind, two.subject, chain.mechanism):
        return each.confidence
    kinds = {link.kind for link in chain.links}
    part = replace(each, links=tuple(link for link in each.links if link.kind in kinds))
    return max(each.confidence, part.confidence if part.links else 0.0)


def _new_conditions(whole: Diagnosis, less: Diagnosis) -> Iterator[str]:
    """Yield conditions that the whole recording does not have, or has as less severe."""
    known = {(each.kind, each.owner): each.severity for each in whole.conditions}
    for each in less.conditions:
        before = known.get((each.kind, each.owner))
        if before is None:
            yield f"a condition of its own: {each.kind} of {each.owner.name}"
        elif before == "warning" and each.severity == "critical":
            yield f"condition {each.kind} of {each.owner.name} became critical"


def _ruled_out(whole: Diagnosis, finding: Finding, known: set[str]) -> Iterator[str]:
    before = {each.name for other in whole.findings for each in other.ruled_out}
    roots = {chain.root.name for other in whole.findings for chain in other.chains[:1]}
    for each in finding.ruled_out:
        if each.name in roots or (each.name not in before and each.name in known):
            yield f"ruled out anew: {each.statement}"


# -- claims of absence ---------------------------------------------------------------

_NEGATIVE = re.compile(r"\b(no|not|none|never|nothing|nobody|0 of|0 times|few|only)\b")
# What says of itself that it is about what could not be seen.
_HONEST = re.compile(
    r"recorded|known|knows|cannot|not said|not compared|not observed|not followed|could not be "
    r"seen|would not be seen|to be averaged|cannot be told|to know what is usual|"
    r"tells it from|tie them|ties them|can be named"
)


def _unseen(whole: Diagnosis, less: Diagnosis, degraded: Degraded) -> Iterator[str]:
    """Yield claims of absence of what was not observed, by their data and by their words."""
    known = {_plain(text) for text, _ in _statements(whole)}
    for text, absent in _statements(less):
        if absent is not None and not _is_covered(absent, degraded.recording):
            yield f"not observed: {text}"
        elif absent is None and _plain(text) not in known and _claims(text, known):
            yield f"a claim of its own: {text}"


def _claims(text: str, known: set[str]) -> bool:
    """Decide whether a sentence without data denies something, by its words."""
    clauses = [each for each in re.split("; |: |, ", text) if _NEGATIVE.search(each)]
    return any(not _is_honest(each, known) for each in clauses)


def _is_covered(absent: Absence, recording: Recording) -> bool:
    """Decide whether a recording observed as much as a claim rests on, and any of it."""
    observed_ns = recording.coverage(absent.table, absent.window).observed_ns
    return 0 < absent.observed_ns <= observed_ns + EDGE_NS


def _is_honest(clause: str, known: set[str]) -> bool:
    return _HONEST.search(clause) is not None or any(_plain(clause) in each for each in known)


def _plain(text: str) -> str:
    """Return a sentence without its numbers: they may differ with what is left."""
    return re.sub(r"[\d.,]+", "#", text)


def _statements(found: Diagnosis) -> Iterator[tuple[str, Absence | None]]:
    """Yield every sentence of a diagnosis, with what it claims was not there."""
    for finding in found.findings:
        links = (link for chain in finding.chains for link in chain.links)
        yield from ((link.statement, link.absent) for link in links)
        yield from ((each.statement, each.absent) for each in finding.ruled_out)
        yield from ((text, None) for text in finding.recurring)
        if finding.ends is not None:
            yield finding.ends.consequence, finding.ends.absent
    yield from ((each.consequence, each.absent) for each in found.missing)
    for condition in found.conditions:
        yield condition.statement, None
        yield condition.trend, None

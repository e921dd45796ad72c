"""Which samples a view is about: the filters' names, meanings and checks, declared once.

The command line (`--cpu 0-5`), the HTTP API (`cpu=0-5`), the page's address and the JSON of
a view all use these words and are all read by `parse_filter`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nodescope.errors import UsageError
from nodescope.quantities import format_cpu_list, parse_cpu_list
from nodescope.records.function_pattern import check_function_pattern

SampleMode = Literal["user", "kernel"]
SAMPLE_MODES: tuple[SampleMode, ...] = ("user", "kernel")
FilterWords = Mapping[str, Sequence[str]]  # what was given, by the filter's name


@dataclass(frozen=True, slots=True)
class FilterOption:
    """One filter, as people and programs give it."""

    name: str
    placeholder: str
    help: str
    longest: int  # characters; more is refused over HTTP
    repeatable: bool = False  # any of those that are given may hold


FILTER_OPTIONS = (
    FilterOption("cpu", "LIST", "only these cores, e.g. 0-5,39", 2000),
    FilterOption("comm", "NAME", "only threads of this name; `*` matches anything", 200,
                 repeatable=True),
    FilterOption("pid", "LIST", "only these processes, e.g. 812,4021", 2000, repeatable=True),
    FilterOption("cgroup", "TEXT", "only cgroups with this in their path, or of the pod or "
                 "container called so", 1000, repeatable=True),
    FilterOption("mode", "MODE", "only kernel or only user", 6),
    FilterOption("frame", "RE", "only stacks with a function that matches this expression", 500),
    FilterOption("no_frame", "RE", "only stacks without a function that matches this expression",
                 500),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """A choice of samples; all that is given must hold, and None or () is not given."""

    cpus: frozenset[int] | None = None
    comms: tuple[str, ...] = ()  # any of them; `*` matches anything
    pids: frozenset[int] | None = None
    cgroups: tuple[str, ...] = ()  # any is part of the path, or the name of its pod or container
    mode: SampleMode | None = None
    frame: str | None = None  # a regular expression that some function matches
    no_frame: str | None = None  # one that no function matches

    def words(self) -> Iterator[tuple[str, str]]:
        """Yield what is given as (name, text), in the order of `FILTER_OPTIONS`."""
        if self.cpus is not None:
            yield "cpu", format_cpu_list(sorted(self.cpus))
        yield from (("comm", comm) for comm in self.comms)
        if self.pids is not None:
            yield "pid", ",".join(map(str, sorted(self.pids)))
        yield from (("cgroup", cgroup) for cgroup in self.cgroups)
        for name, text in (("mode", self.mode), ("frame", self.frame), ("no_frame", self.no_frame)):
            if text is not None:
                yield name, text


def parse_filter(words: FilterWords) -> SampleFilter:
    """Return the filter that was given in words; `UsageError` where one makes no sense."""
    cpus = [cpu for text in words.get("cpu", ()) for cpu in _parse_cpus(text)]
    pids = [pid for text in words.get("pid", ()) for pid in _parse_pids(text)]
    return SampleFilter(
        cpus=frozenset(cpus) if cpus else None,
        comms=tuple(words.get("comm", ())),
        pids=frozenset(pids) if pids else None,
        cgroups=tuple(words.get("cgroup", ())),
        mode=_parse_mode(_last(words, "mode")),
        frame=_parse_expression(_last(words, "frame")),
        no_frame=_parse_expression(_last(words, "no_frame")),
    )


def check_filter(name: str, text: str) -> str:
    """Return the text unchanged if the filter of that name can be given so."""
    parse_filter({name: [text]})
    return text


def _last(words: FilterWords, name: str) -> str | None:
    given = words.get(name, ())
    return given[-1] if given else None


def _parse_cpus(text: str) -> list[int]:
    cpus = parse_cpu_list(text)
    if not cpus:
        raise UsageError("no core named", hint="write it like 0-5,39")
    return cpus


def _parse_pids(text: str) -> list[int]:
    numbers = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,9}", each) for each in numbers):
        raise UsageError(f"not process ids: {text!r:.80}", hint="write them like 812,4021")
    return list(map(int, numbers))


def _parse_mode(text: str | None) -> SampleMode | None:
    for mode in SAMPLE_MODES:
        if text == mode:
            return mode
    if text is None:
        return None
    raise UsageError(f"not a mode: {text!r:.80}", hint="write it as user or kernel")


def _parse_expression(text: str | None) -> str | None:
    return None if text is None else check_function_pattern(text)

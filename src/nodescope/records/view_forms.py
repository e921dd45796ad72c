"""The forms of a view: a command line, a place and an address of the page, and JSON.

A command names its recording with `--archive` unless it is the one read by default, and
unless the view shows the machine as it is. Every name in it is quoted for a shell.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from nodescope.quantities import MILLISECOND_NS, SECOND_NS, format_exact_duration
from nodescope.records.sample_filter import SampleFilter, parse_filter
from nodescope.records.view import VIEW_KINDS, Last, Moment, PagePart, Span, View, When
from nodescope.wall_time import format_moment

Document = dict[str, object]  # JSON
PAGE_MARGIN_NS = 15 * SECOND_NS  # around a moment for which the view names no margin
_TABS: dict[PagePart, str] = {"facts": "facts"}  # the others are in sight in the tab it opens with
_T = TypeVar("_T")


# -- a command line --------------------------------------------------------------


def render_command(view: View, archive: Path | None = None) -> str:
    """Return the command that shows it; of the recording read by default if none is named."""
    words = ["nodescope", *view.kind.command, *_subject(view), *_when(view.when), *_narrowed(view)]
    if archive is not None and not view.of_machine:
        words += ["--archive", str(archive)]
    return shlex.join(words)


def _subject(view: View) -> Iterator[str]:
    """Yield the options that stand before the time."""
    if view.by is not None:
        yield from ("--by", view.by)
    for name, text in view.filter.words():
        yield from _option(name, text)
    if view.table is not None:
        yield from ("--table", view.table)
    for column, value in view.where:
        yield from ("--where", f"{column}={value}")
    if view.serious:
        yield "--serious"


def _narrowed(view: View) -> Iterator[str]:
    """Yield the options that stand after the time."""
    if view.kinds:
        yield from ("--kind", ",".join(view.kinds))
    if view.unit is not None:
        yield from _option("unit", view.unit)
    if view.parents:
        yield "--parents"
    if view.files:
        yield "--files"
    if view.watch_ns is not None:
        yield from ("--watch", format_exact_duration(view.watch_ns))


def _option(name: str, text: str) -> tuple[str, ...]:
    """Return an option and its value; one that looks like an option stands in one word with it."""
    option = f"--{name.replace('_', '-')}"
    return (f"{option}={text}",) if text.startswith("-") else (option, text)


def _when(when: When | None) -> Iterator[str]:
    if isinstance(when, Moment):
        yield from ("--at", format_moment(when.at_ns))
        if when.margin_ns is not None:
            yield from ("--around", format_exact_duration(when.margin_ns))
    elif isinstance(when, Last):
        yield from ("--last", format_exact_duration(when.length_ns))
    elif when is not None:
        if when.from_ns is not None:
            yield from ("--from", format_moment(when.from_ns))
        if when.to_ns is not None:
            yield from ("--to", format_moment(when.to_ns))


# -- the page ----------------------------------------------------------------------


def page_place(view: View, at_ns: int) -> Document:
    """Return the part of the page that shows it, the time and the filters.

    `at_ns` is the moment it is about where the view itself names no time.
    """
    from_ns, to_ns = _page_span(view, at_ns)
    words = _page_filters(view.filter)
    from_ms, to_ms = from_ns / MILLISECOND_NS, to_ns / MILLISECOND_NS
    return {"view": view.kind.part, "from_ms": from_ms, "to_ms": to_ms, **words}


def page_address(view: View, at_ns: int) -> str:
    """Return the query of the page's address at that place, as `ui/src/address.ts` reads it."""
    from_ns, to_ns = _page_span(view, at_ns)
    query = {"sel": f"{_page_ms(from_ns)}~{_page_ms(to_ns)}"}
    for name, text in _page_filters(view.filter).items():
        query["m" if name == "mode" else name] = text
    if tab := _TABS.get(view.kind.part):
        query["tab"] = tab
    return f"?{urlencode(query, safe='~,')}"


def _page_filters(filters: SampleFilter) -> dict[str, str]:
    """Return the filters the page can have: one of each."""
    given: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in filters.words():
        given[name].append(text)
    return {name: texts[0] for name, texts in given.items() if len(texts) == 1}


def _page_span(view: View, at_ns: int) -> tuple[int, int]:
    when = view.when
    if isinstance(when, Span) and when.from_ns is not None and when.to_ns is not None:
        return when.from_ns, when.to_ns
    margin_ns = PAGE_MARGIN_NS
    if isinstance(when, Moment):
        at_ns = when.at_ns
        margin_ns = PAGE_MARGIN_NS if when.margin_ns is None else when.margin_ns
    # Facts are those of the end of the selection: as they were at that moment.
    to_ns = at_ns if view.kind.part == "facts" else at_ns + margin_ns
    return max(0, at_ns - margin_ns), to_ns


def _page_ms(time_ns: int) -> str:
    return f"{time_ns / MILLISECOND_NS:.4f}".rstrip("0").rstrip(".")


# -- JSON --------------------------------------------------------------------------


def view_document(view: View) -> Document:
    """Return it as JSON; what is not given is left out, and `machine` marks one of no recording."""
    document: Document = {"what": view.what}
    document |= _when_document(view.when)
    words: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in view.filter.words():
        words[name].append(text)
    if words:
        document["filter"] = {
            name: texts[0] if len(texts) == 1 else texts for name, texts in words.items()
        }
    for name in ("by", "unit", "table", "watch_ns"):
        if (value := getattr(view, name)) is not None:
            document[name] = value
    if view.kinds:
        document["kinds"] = list(view.kinds)
    if view.where:
        document["where"] = dict(view.where)
    document |= {name: True for name in ("serious", "parents", "files") if getattr(view, name)}
    if view.of_machine:
        document["machine"] = True
    return document


def _when_document(when: When | None) -> Document:
    if isinstance(when, Moment):
        margin = {} if when.margin_ns is None else {"margin_ns": when.margin_ns}
        return {"at_ns": when.at_ns, **margin}
    if isinstance(when, Last):
        return {"last_ns": when.length_ns}
    if when is None:
        return {}
    ends = {"from_ns": when.from_ns, "to_ns": when.to_ns}
    return {name: time_ns for name, time_ns in ends.items() if time_ns is not None}


def parse_view(document: Mapping[str, object]) -> View:
    """Return the view that `view_document` wrote; `ValueError` says what is wrong with it."""
    known = {"what", "filter", "machine", *_WHEN, *_FIELDS}
    if unknown := sorted(document.keys() - known):
        raise ValueError(f"a view has no {unknown[0]!r}")
    what = document.get("what")
    if what not in VIEW_KINDS:
        raise ValueError(f"no view {what!r}: there are {', '.join(VIEW_KINDS)}")
    where = _get(document, "where", dict, {})
    view = View(
        what,
        _parse_when(document),
        parse_filter(_filter_words(document)),
        by=_get(document, "by", str, None),
        kinds=tuple(map(str, _get(document, "kinds", list, []))),
        serious=_get(document, "serious", bool, False),
        unit=_get(document, "unit", str, None),
        table=_get(document, "table", str, None),
        where=tuple((str(column), str(value)) for column, value in where.items()),
        parents=_get(document, "parents", bool, False),
        files=_get(document, "files", bool, False),
        watch_ns=_get(document, "watch_ns", int, None),
    )
    if view.of_machine != document.get("machine", view.of_machine):
        raise ValueError(f"the view {view.what} without a time is of the machine")
    return view


_WHEN = ("at_ns", "margin_ns", "last_ns", "from_ns", "to_ns")
_FIELDS = ("by", "kinds", "serious", "unit", "table", "where", "parents", "files", "watch_ns")


def _parse_when(document: Mapping[str, object]) -> When | None:
    at, margin, last, start, end = (_get(document, name, int, None) for name in _WHEN)
    if sum((at is not None, last is not None, (start, end) != (None, None))) > 1:
        raise ValueError("at_ns, last_ns and from_ns/to_ns each choose a time: give one of them")
    if at is not None:
        return Moment(at, margin)
    if last is not None:
        return Last(last)
    return None if (start, end) == (None, None) else Span(start, end)


def _filter_words(document: Mapping[str, object]) -> dict[str, list[str]]:
    given = _get(document, "filter", dict, {})
    return {
        str(name): [str(each) for each in (text if isinstance(text, list) else [text])]
        for name, text in given.items()
    }


def _get(document: Mapping[str, object], name: str, kind: type[_T], default: _T) -> _T:
    value = document.get(name, default)
    if value is not default and not isinstance(value, kind):
        raise ValueError(f"{name} is not {kind.__name__}: {value!r}")
    return value

"""A view in its forms: a command that reads back as the same view, a place of the page, JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.cli.main import build_parser
from nodescope.cli.window import given_filter, given_when
from nodescope.recording.window import TimeExtent
from nodescope.records.sample_filter import SampleFilter, parse_filter
from nodescope.records.view import (
    VIEW_KINDS,
    Last,
    Moment,
    Span,
    View,
    ViewName,
    When,
    around,
)
from nodescope.records.view_forms import (
    page_address,
    page_place,
    parse_view,
    render_command,
    view_document,
)

AT = 1_780_000_000_000_000_000  # 2026-05-28T20:26:40Z
T, LATER = "2026-05-28T20:26:40.000Z", "2026-05-28T20:26:41.500Z"
CSV = "nodescope export csv --output -"
CORE_39 = SampleFilter(cpus=frozenset([39]), mode="kernel")

_words = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8)
_filters = st.builds(
    SampleFilter,
    cpus=st.none() | st.frozensets(st.integers(0, 500), min_size=1, max_size=4),
    comms=st.lists(_words, max_size=2).map(tuple),
    pids=st.none() | st.frozensets(st.integers(1, 10**8), min_size=1, max_size=3),
    cgroups=st.lists(_words, max_size=2).map(tuple),
    mode=st.sampled_from([None, "user", "kernel"]),
    frame=st.none() | st.sampled_from(["a|b", "^x", "-.*", "it's"]),
    no_frame=st.none() | st.just("operator\\(\\)"),
)
_times = st.integers(1, 2_000_000_000_000).map(lambda ms: ms * 1_000_000)
_lengths = st.integers(1, 10**6).map(lambda ms: ms * 1_000_000)
_whens = st.one_of(
    st.none(),
    st.builds(Moment, _times, st.none() | _lengths),
    st.builds(Last, _lengths),
    st.builds(Span, _times, st.none() | _times),
)
_fields: dict[str, st.SearchStrategy[object]] = {
    "when": _whens,
    "filter": _filters,
    "by": st.sampled_from([None, "comm"]),
    "kinds": st.lists(st.sampled_from(["oom_kill", "nic_reset"]), max_size=2).map(tuple),
    "serious": st.booleans(),
    "unit": st.none() | _words,
    "table": st.sampled_from(["memory", "cgroups"]),
    "where": st.lists(st.tuples(st.just("name"), _words), max_size=1).map(tuple),
    "parents": st.booleans(),
    "files": st.booleans(),
    "watch_ns": st.none() | _lengths,
}


@st.composite
def _views(draw: st.DrawFn) -> View:
    what: ViewName = draw(st.sampled_from(get_args(ViewName)))
    kind = VIEW_KINDS[what]
    drawn = {name: draw(_fields[name]) for name in sorted(kind.takes)}
    if kind.moment:
        drawn["when"] = draw(st.none() | st.builds(Moment, _times))
        for name in kind.then if drawn["when"] is None else kind.now:
            del drawn[name]
    if kind.cores:
        drawn["filter"] = SampleFilter(cpus=frozenset([draw(st.integers(0, 500))]))
        drawn["by"] = draw(st.sampled_from([None, "softirq"]))
    return View(what, **drawn)  # type: ignore[arg-type]  # each is drawn for its field


@given(_views())
def test_json_reads_back_as_the_same_view(view: View) -> None:
    assert parse_view(json.loads(json.dumps(view_document(view)))) == view


@given(_views())
def test_every_command_is_one_the_command_line_reads(view: View) -> None:
    program, *arguments = shlex.split(render_command(view, Path("/a b/it's.nodescope")))
    assert program == "nodescope"
    args = build_parser(arguments).parse_args(arguments)
    if not view.of_machine:
        assert args.archive == Path("/a b/it's.nodescope")
    if "filter" in view.kind.takes or ("when" in view.kind.takes and not view.kind.moment):
        assert given_filter(args) == view.filter
        assert given_when(args, TimeExtent([]), 0) == view.when
    for name, value in (("unit", [view.unit]), ("table", view.table), ("serious", view.serious)):
        if name in view.kind.takes and getattr(view, name):
            assert getattr(args, name) == value


@pytest.mark.parametrize(
    ("view", "command"),
    [
        (View("doctor"), "nodescope doctor"),
        (View("zombies", parents=True), "nodescope zombies --parents"),
        (View("top"), "nodescope top --archive '/a b'"),
        (
            View("zombies", Moment(AT)),
            f"nodescope zombies --at {T} --archive '/a b'",
        ),
        (
            View("flame", Span(AT, AT + 1_500_000_000), CORE_39),
            f"nodescope flame --cpu 39 --mode kernel --from {T} --to {LATER} --archive '/a b'",
        ),
        (
            View("table", around(AT, 9), table="nics", where=(("nic", "a"),)),
            f"{CSV} --table nics --where nic=a --at {T} --around 9s --archive '/a b'",
        ),
        (
            View("audit", Moment(AT), unit="-.mount"),
            f"nodescope audit --at {T} --unit=-.mount --archive '/a b'",
        ),
    ],
)
def test_a_command_names_its_recording_unless_it_is_of_the_machine(
    view: View, command: str
) -> None:
    assert render_command(view, Path("/a b")) == command
    assert render_command(view) == command.removesuffix(" --archive '/a b'")


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (lambda: View("events", unit="x.service"), "the view events takes no unit"),
        (lambda: View("zombies", around(AT)), "takes a moment, and no window around it"),
        (lambda: View("zombies", Last(AT)), "takes a moment, and no window around it"),
        (lambda: View("zombies", Moment(AT), files=True), "of a time takes no files"),
        (lambda: View("audit", unit="x.service"), "needs a time for unit"),
        (lambda: View("cores", filter=CORE_39), "no filter but cores"),
        (lambda: View("table"), "needs the name of one"),
    ],
)
def test_a_view_takes_only_what_means_something_to_it(
    view: Callable[[], View], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        view()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"what": "tip"}, "no view 'tip'"),
        ({"what": "top", "colour": 1}, "a view has no 'colour'"),
        ({"what": "top", "at_ns": 1, "last_ns": 2}, "give one of them"),
        ({"what": "top", "by": 7}, "by is not str"),
        ({"what": "zombies", "machine": False}, "is of the machine"),
    ],
)
def test_a_wrong_document_is_refused(document: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_view(document)


# -- the page --------------------------------------------------------------------


def test_a_span_and_its_filters_are_a_place_of_the_page() -> None:
    view = View("flame", Span(AT - 9_500_000_000, AT), CORE_39)
    assert page_place(view, 0) == {
        "view": "flame",
        "cpu": "39",
        "mode": "kernel",
        "from_ms": 1779999990500.0,
        "to_ms": 1780000000000.0,
    }
    assert page_address(view, 0) == "?sel=1779999990500~1780000000000&cpu=39&m=kernel"


def test_a_moment_is_a_place_with_its_margin() -> None:
    place = page_place(View("events", around(AT, 30)), 0)
    assert place == {"view": "events", "from_ms": 1779999970000.0, "to_ms": 1780000030000.0}


@pytest.mark.parametrize("when", [None, Last(5), Span(to_ns=7)])
def test_a_view_without_both_ends_is_about_the_moment_asked_for(when: When | None) -> None:
    place = page_place(View("top", when), AT)
    assert (place["from_ms"], place["to_ms"]) == (1779999985000.0, 1780000015000.0)


def test_facts_are_those_of_the_moment() -> None:
    view = View("zombies", parents=True)
    assert page_place(view, AT)["to_ms"] == AT / 1e6
    assert page_address(view, AT) == "?sel=1779999985000~1780000000000&tab=facts"


def test_the_page_filters_by_one_name() -> None:
    both, one = (View("top", filter=SampleFilter(comms=names)) for names in (("a", "b"), ("a&b",)))
    assert "comm" not in page_place(both, AT)
    assert page_address(one, AT).endswith("&comm=a%26b")


# -- filters ---------------------------------------------------------------------


def test_a_filter_in_words_reads_back() -> None:
    words = {"cpu": ["0-3,9"], "pid": ["812", "7"], "comm": ["a", "b*"], "mode": ["user"]}
    found = parse_filter(words)
    assert list(found.words()) == [
        ("cpu", "0-3,9"), ("comm", "a"), ("comm", "b*"), ("pid", "7,812"), ("mode", "user"),
    ]  # fmt: skip

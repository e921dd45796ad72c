"""Every path of the API, declared once: this list answers, checks and documents."""

from __future__ import annotations

import re

from nodescope.analysis.tracks import TRACKS
from nodescope.errors import UsageError
from nodescope.exchange.export.catalogue import BUNDLE, SAMPLE_FORMATS
from nodescope.web import schemas
from nodescope.web.answers import (
    compare,
    diagnosis,
    exports,
    facts,
    fix,
    processes,
    quality,
    samples,
    timeline,
)
from nodescope.web.declaration import AnswerKind, Parameter, Route, choice, flag, integer, text
from nodescope.web.matrix import MEDIA_TYPE
from nodescope.web.parameters import AT, BASE, FILTERS, REVISION, WINDOW

_MATRIX = (AnswerKind(MEDIA_TYPE),)
_VIEW = (*WINDOW, *FILTERS, REVISION)  # one that cannot use a filter does not


def _json(schema: schemas.Schema) -> tuple[AnswerKind]:
    return (AnswerKind("application/json", schema),)


def _download(media_type: str) -> tuple[AnswerKind]:
    if media_type == "application/json":
        return (AnswerKind(media_type, {"type": "object"}),)
    return (AnswerKind(media_type),)


def _parse_kinds(given: str) -> frozenset[str]:
    return frozenset(name.strip() for name in given.split(",") if name.strip())


def _parse_id(given: str) -> int:
    if not re.fullmatch("[0-9a-f]{16}", given):
        raise UsageError("not the id of a node", hint="take it from a node with `more`")
    return int(given, 16)


_COLUMNS = integer("columns", "how many columns at most", 1, timeline.MOST_COLUMNS, 1200)
_ID = Parameter(
    "id",
    "the node of that `id`, filled in",
    {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    _parse_id,
)
_FLAME = (
    flag("inverted", "from the innermost function to its callers"),
    choice("merge", "what stands at the root", ("comm", "cpu", "cgroup", "pod", "pid", "none"),
           "comm"),
    text("path", "names from the root, joined by U+001F: that node, filled in", 30_000),
    _ID,
    integer("width", "of the picture in pixels: half a pixel is the narrowest", 100, 10_000, 1400),
)  # fmt: skip

ROUTES = (
    Route("/api/recording", "Which node, from when to when, what is missing",
          timeline.recording, _json(schemas.RECORDING), (REVISION,)),
    Route("/api/cores", "Peak share of a state, by core and column, and the node's mean",
          timeline.cores, _MATRIX,
          (*_VIEW, choice("state", "of core time", timeline.STATES, "system"), _COLUMNS)),
    Route("/api/tracks", "The lines there are", timeline.tracks, _json(schemas.TRACKS),
          (REVISION,)),
    Route("/api/track", "One line, in columns", timeline.track, _json(schemas.TRACK),
          (*_VIEW, choice("name", "which one", tuple(TRACKS), next(iter(TRACKS))), _COLUMNS)),
    Route("/api/processes", "Cores that each of the busiest processes used, by column",
          processes.processes, _json(schemas.PROCESSES),
          (*_VIEW, _COLUMNS, integer("limit", "how many processes", 1, processes.MOST_LANES, 6))),
    Route("/api/events", "What happened, each at its time", timeline.events,
          _json(schemas.EVENTS),
          (*_VIEW, text("kinds", "only these kinds, separated by commas", 2000, _parse_kinds),
           flag("serious", "only serious ones"),
           integer("limit", "how many at most", 1, 5000, 1000))),
    Route("/api/heatmap", "Samples by second and offset within it", samples.heatmap, _MATRIX,
          (*_VIEW, integer("rows", "of a column", 1, 100, 50),
           integer("columns", "how many at most; a longer window takes wider ones", 1, 20_000,
                   20_000)), by_samples=True),
    Route("/api/flame", "Samples by path of functions", samples.flame, _json(schemas.FLAME),
          (*_VIEW, *_FLAME), by_samples=True),
    Route("/api/top", "What ran most", samples.top, _json(schemas.TOP),
          (*_VIEW, choice("by", "ranked by", ("function", "comm", "cpu", "cgroup", "pid"),
                           "function"),
           integer("limit", "how many at most", 1, 5000, 500)), by_samples=True),
    Route("/api/compare", "What is different from the time before, or from another window",
          compare.compare, _json(schemas.COMPARE),
          (*_VIEW, *BASE, integer("limit", "how many rows at most", 1, 2000, 200)), slow=True),
    Route("/api/compare/flame", "The flame graph, with what the baseline had on each path",
          compare.compare_flame, _json(schemas.DIFFERENCE), (*_VIEW, *BASE, *_FLAME),
          slow=True),
    Route("/api/facts", "The node at one moment", facts.facts, _json(schemas.FACTS),
          (*AT, REVISION)),
    Route("/api/quality", "How far the window can be trusted", quality.quality,
          _json(schemas.QUALITY), _VIEW, slow=True),
    Route("/api/diagnosis", "What went wrong, and why", diagnosis.diagnosis,
          (*_json(schemas.DIAGNOSIS), AnswerKind("text/event-stream")), _VIEW, slow=True),
    Route("/api/fix/plan", "The plan of a fix for this node; nothing is changed",
          fix.fix_plan, _json(schemas.FIX_PLAN), (REVISION,), slow=True, cached=False),
    Route("/api/fix/status", "The fixes applied on this node, step by step", fix.fixes,
          _json(schemas.FIXES), (REVISION,), cached=False),
    Route("/api/report.html", "The diagnosis with its pictures, as one file",
          diagnosis.report_html, (AnswerKind("text/html"),), _VIEW, slow=True),
    Route("/api/report.md", "The diagnosis as Markdown", diagnosis.report_markdown,
          (AnswerKind("text/markdown"),), _VIEW, slow=True),
    Route("/api/bundle", "Everything of the window in one file", exports.bundle,
          (AnswerKind(BUNDLE.media_type),), _VIEW, slow=True, cached=False),
    *(Route(f"/api/export/{name}", f"The window for {name}", exports.export(each),
            _download(each.media_type.partition(";")[0]), _VIEW, slow=True, cached=False)
      for each in SAMPLE_FORMATS for name in each.names),
)  # fmt: skip

"""The diagnosis of a window, and its report."""

from __future__ import annotations

from urllib.parse import urlencode

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis, Finding, Link
from nodescope.diagnosis.report.document import (
    DiagnosisDocument,
    FindingDocument,
    diagnosis_document,
)
from nodescope.diagnosis.report.html import render_page
from nodescope.diagnosis.report.text import render_markdown
from nodescope.pictures.answer_size import LARGEST
from nodescope.records.view import Moment, Span, View
from nodescope.records.view_forms import PAGE_MARGIN_NS, page_address, page_place
from nodescope.web.answers.replies import json_reply
from nodescope.web.question import Question, Reply, to_ms


def diagnosis(question: Question) -> Reply:
    """Answer as `nodescope diagnose --json` does, in milliseconds, a place for each link."""
    found = _diagnose(question)
    reply = json_reply(_document(found))
    while len(reply.body) > LARGEST and found.findings:
        found.findings.pop()
        reply = json_reply({**_document(found), "left_off": True})
    return reply


def _diagnose(question: Question) -> Diagnosis:
    if not question.window.length_ns:
        return Diagnosis(question.window.from_ns, question.window.to_ns)
    found = diagnose(question.recording, question.window, None, question.show)
    found.archive = question.snapshot.archive.root.absolute()
    return found


def _document(found: Diagnosis) -> DiagnosisDocument:
    document = diagnosis_document(found)
    document["from_ms"], document["to_ms"] = to_ms(found.from_ns), to_ms(found.to_ns)
    for finding, told in zip(found.findings, document["findings"], strict=True):
        _place(finding, told)
    for condition, lasting in zip(found.conditions, document["conditions"], strict=True):
        place = page_place(condition.show, found.to_ns)
        row = {"row": condition.owner.name} if place["view"] == "facts" else {}
        lasting["look"] = {**place, **row}
    return document


def _place(finding: Finding, told: FindingDocument) -> None:
    symptom = finding.symptom
    for each, said in zip((symptom, *finding.also), (told["symptom"], *told["also"]), strict=False):
        said["time_ms"] = to_ms(each.time_ns)
        if each.from_ns is not None:
            said["from_ms"] = to_ms(each.from_ns)
        start = each.time_ns if each.from_ns is None else each.from_ns
        span = Span(max(0, start - PAGE_MARGIN_NS), each.time_ns + PAGE_MARGIN_NS)
        said["look"] = page_place(View("cores", span), each.time_ns)
    told["repeats_ms"] = [to_ms(time_ns) for time_ns in finding.repeats]
    for chain, explained in zip(finding.chains, told["chains"], strict=True):
        for link, shown in zip(chain.links, explained["links"], strict=True):
            shown["refute"] = link.refute
            view = _page_view(link, symptom.time_ns)
            marked = _marked(link)
            shown["look"] = {**page_place(view, symptom.time_ns), **marked}
            query = urlencode({_PARAMETERS[name]: text for name, text in marked.items()})
            address = page_address(view, symptom.time_ns)
            shown["address"] = f"{address}&{query}" if query else address


# Links whose subject is a row of the node's facts: a cgroup, a unit, a container, a queue.
_FACTS = frozenset({"parent", "queue", "source", "why"})
_PARAMETERS = {"marked_frame": "search", "row": "row"}  # of the page's address


def _page_view(link: Link, at_ns: int) -> View:
    """Return what the page shows of a link: the node's facts at that moment, or its own view."""
    if link.kind not in _FACTS:
        return link.show
    when = link.show.when
    return View("audit", Moment(when.at_ns if isinstance(when, Moment) else at_ns))


def _marked(link: Link) -> dict[str, str]:
    """Return the function of the flame graph or the row of the facts that the page marks."""
    if link.kind in _FACTS:
        return {"row": link.subject}
    return {"marked_frame": link.frame} if link.frame else {}


def report_html(question: Question) -> Reply:
    """The report with its pictures, as one file."""
    found = _diagnose(question)
    page = render_page(found, Case(question.recording, question.window), question.node)
    return Reply(page.encode(), "text/html; charset=utf-8", "diagnosis.html")


def report_markdown(question: Question) -> Reply:
    """The report for an incident's page."""
    text = render_markdown(_diagnose(question))
    return Reply(text.encode(), "text/markdown; charset=utf-8", "diagnosis.md")

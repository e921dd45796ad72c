"""A diagnosis as one HTML file with its pictures: nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Missing
from nodescope.diagnosis.report.evidence_pictures import Picture, draw_evidence
from nodescope.diagnosis.report.summary import (
    PROPOSED,
    UNKNOWN,
    again,
    checks_of,
    condition_steps,
    describe_confidence,
    describe_missing,
    headline,
    name_root,
    path_of,
    sentence,
    silence,
    since_of,
    split_code,
    statement_of,
    steps_of,
    when,
    word_of,
)
from nodescope.pictures.html import report_page
from nodescope.pictures.svg import render_svg
from nodescope.pictures.text import visible
from nodescope.records.view import View
from nodescope.records.view_forms import render_command
from nodescope.wall_time import format_moment

WITH_PICTURES = 3  # findings; the rest would tell the same


def render_page(diagnosis: Diagnosis, case: Case, node: str) -> str:
    """The report."""
    heading = f"Diagnosis of {node}"
    parts = [
        f"<h1>{_text(heading)}</h1>",
        f"<p>{format_moment(diagnosis.from_ns)} to {format_moment(diagnosis.to_ns)}</p>",
    ]
    if diagnosis.silent:
        parts.append(f"<p>{_text(sentence(silence(diagnosis)))}</p>")
    for number, finding in enumerate(diagnosis.findings):
        parts += _finding(number + 1, finding, diagnosis.archive)
        if number < WITH_PICTURES:
            parts += [_figure(each) for each in draw_evidence(case, finding)]
    if len(diagnosis.findings) > WITH_PICTURES:
        parts.append(f"<p>Only the first {WITH_PICTURES} findings have pictures.</p>")
    if diagnosis.conditions:
        parts += ["<h2>Conditions</h2>", *_conditions(diagnosis)]
    if diagnosis.missing:
        parts.append("<h2>Missing</h2><ul>")
        parts += [
            f"<li><b>{_text(each.what)}</b>: {_missing(each, diagnosis.archive)}</li>"
            for each in diagnosis.missing
        ]
        parts.append("</ul>")
    return report_page(heading, "\n".join(parts))


def _conditions(diagnosis: Diagnosis) -> Iterator[str]:
    yield "<table><thead><tr><th></th><th>what lasts</th><th>what to do</th></tr></thead><tbody>"
    for each in diagnosis.conditions:
        steps = "".join(
            f"<li>{_prose(step.statement)}"
            f"{f'<br><code>{_text(step.command)}</code>' if step.command else ''}</li>"
            for step in condition_steps(each, diagnosis.archive)
        )
        yield (
            f"<tr><th>{_text(each.severity)}</th><td>{_prose(statement_of(each))}"
            f"<br>{_text(since_of(each))}{_command(each.show, diagnosis.archive)}</td>"
            f"<td><ol>{steps}</ol></td></tr>"
        )
    yield "</tbody></table>"


def _figure(picture: Picture) -> str:
    drawn = render_svg(picture.drawing, standalone=False)
    return f"<figure>{drawn}<figcaption>{_text(picture.caption)}</figcaption></figure>"


def _text(text: str) -> str:
    return escape(visible(text, 4096))


def _prose(text: str) -> str:
    """Return a sentence as markup; what stands between backticks is code."""
    return "".join(
        f"<code>{_text(piece)}</code>" if code else _text(piece) for piece, code in split_code(text)
    )


def _command(view: View | None, archive: Path | None) -> str:
    if view is None:
        return ""
    return f"<br><code>{_text(render_command(view, archive))}</code>"


def _missing(missing: Missing, archive: Path | None) -> str:
    return f"{_prose(describe_missing(missing))}{_command(missing.show, archive)}"


def _finding(number: int, finding: Finding, archive: Path | None) -> Iterator[str]:
    symptom = finding.symptom
    yield f"<h2>{number}. {_text(headline(symptom))}</h2>"
    said = again(finding, len(finding.repeats))
    yield f"<p>At {when(symptom)}{f'; {_text(said)}' if said else ''}.</p>"
    best = finding.chains[0] if finding.chains else None
    if best is None or not best.explains:
        further = "" if finding.ends is None else _missing(finding.ends, archive)
        yield f"<h3>Cause: {UNKNOWN}</h3><p>{further}</p>"
    else:
        yield f"<h3>{word_of(best)}: {_cause(best)}</h3><p>{_text(path_of(best))}</p>"
        yield from _steps(best, archive)
    if best is not None:
        yield from _evidence(best, archive)
    for chain in finding.chains[1:]:
        yield f"<h3>Or: {_cause(chain)}</h3><p>{_prose(chain.links[-1].statement)}</p>"
    if finding.recurring:
        lines = "".join(f"<li>{_prose(line)}</li>" for line in finding.recurring)
        yield f"<h3>Around all of these times</h3><ul>{lines}</ul>"
    if finding.ruled_out:
        yield "<h3>Not it</h3><ul>"
        yield from (
            f"<li>{_prose(each.statement)}{_command(each.show, archive)}</li>"
            for each in finding.ruled_out
        )
        yield "</ul>"


def _cause(chain: Chain) -> str:
    return f"{_text(name_root(chain))} <small>{describe_confidence(chain)}</small>"


def _steps(chain: Chain, archive: Path | None) -> Iterator[str]:
    if not (chain.steps or chain.fixes or chain.check):
        return
    yield f"<h3>What helps <small>{PROPOSED}</small></h3>"
    steps = steps_of(chain, archive)
    yield "<ol>" if steps else ""
    for step in steps:
        command = f"<br><code>{_text(step.command)}</code>" if step.command else ""
        yield f"<li>{_prose(step.statement)}{command}</li>"
    yield "</ol>" if steps else ""
    yield from (
        f"<p>{where[:1].upper()}{where[1:]}: <code>{_text(command)}</code></p>"
        for where, command in checks_of(chain, archive)
    )


def _evidence(chain: Chain, archive: Path | None) -> Iterator[str]:
    yield "<h3>Evidence</h3>"
    yield "<table><thead><tr><th></th><th>what the recording shows</th><th>odds</th></tr>"
    yield "</thead><tbody>"
    for link in chain.links:
        meaning = chain.meaning if link.kind == "mechanism" else ""
        yield (
            f"<tr><th>{_text(link.kind)}</th><td>{_prose(link.statement)}"
            f"{f'<p>{_prose(meaning)}</p>' if meaning else ''}"
            f"{_command(link.show, archive)}</td><td>{link.odds}</td></tr>"
        )
    yield "</tbody></table>"
    weakest = chain.weakest
    yield (
        f"<p>Weakest link: {_text(weakest.kind)}; would be refuted by {_prose(weakest.refute)}.</p>"
    )

"""A diagnosis as one HTML file with its pictures: nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.evidence import Picture, draw_evidence
from nodescope.diagnosis.finding import Chain, Diagnosis, Finding
from nodescope.pictures.pages import report_page
from nodescope.pictures.svg import render_svg
from nodescope.pictures.text import iso, visible

WITH_PICTURES = 3  # findings; the rest would tell the same


def render_page(diagnosis: Diagnosis, case: Case, node: str) -> str:
    """The report."""
    heading = f"Diagnosis of {node}"
    parts = [
        f"<h1>{_text(heading)}</h1>",
        f"<p>{iso(diagnosis.from_ns)} to {iso(diagnosis.to_ns)}</p>",
    ]
    if not diagnosis.findings:
        parts.append("<p>Nothing went wrong.</p>")
    for number, finding in enumerate(diagnosis.findings):
        parts += _finding(number + 1, finding)
        if number < WITH_PICTURES:
            parts += [_figure(each) for each in draw_evidence(case, finding)]
    if diagnosis.missing:
        parts.append("<h2>Missing</h2><ul>")
        parts += [
            f"<li><b>{_text(each.what)}</b>: {_text(each.consequence)}; {_text(each.hint)}</li>"
            for each in diagnosis.missing
        ]
        parts.append("</ul>")
    return report_page(heading, "\n".join(parts))


def _figure(picture: Picture) -> str:
    drawn = render_svg(picture.drawing, standalone=False)
    return f"<figure>{drawn}<figcaption>{_text(picture.caption)}</figcaption></figure>"


def _text(text: str) -> str:
    return escape(visible(text, 4096))


def _finding(number: int, finding: Finding) -> Iterator[str]:
    symptom = finding.symptom
    yield f"<h2>{number}. {_text(symptom.subject)}: {_text(symptom.statement)}</h2>"
    again = "".join(f", the same at {iso(time_ns)}" for time_ns in finding.repeats)
    yield f"<p>At {iso(symptom.time_ns)}{again}.</p>"
    if finding.recurring:
        yield "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in finding.recurring) + "</ul>"
    for place, chain in enumerate(finding.chains):
        yield from _chain(place, chain)
    if not finding.chains:
        yield "<p>No cause could be shown from this recording.</p>"
    if finding.ruled_out:
        yield "<h3>Not it</h3><ul>"
        yield from (
            f"<li>{_text(each.statement)}<br><code>{_text(each.show)}</code></li>"
            for each in finding.ruled_out
        )
        yield "</ul>"


def _chain(place: int, chain: Chain) -> Iterator[str]:
    word = "Cause" if place == 0 else "Or"
    yield (
        f"<h3>{word}: {_text(chain.root.kind)} {_text(chain.root.name)} "
        f"<small>confidence {chain.confidence:.0%}</small></h3>"
    )
    if place > 0:
        yield f"<p>{_text(chain.links[-1].statement)}</p>"
        return
    yield "<table><thead><tr><th></th><th>what the recording shows</th><th>strength</th></tr>"
    yield "</thead><tbody>"
    for link in chain.links:
        meaning = chain.meaning if link.kind == "mechanism" else ""
        yield (
            f"<tr><th>{_text(link.kind)}</th><td>{_text(link.statement)}"
            f"{f'<p>{_text(meaning)}</p>' if meaning else '<br>'}"
            f"<code>{_text(link.show)}</code></td><td>{link.strength:.1f}</td></tr>"
        )
    yield "</tbody></table>"
    weakest = chain.weakest
    yield (
        f"<p>Weakest link: {_text(weakest.kind)}; would be refuted by {_text(weakest.refute)}.</p>"
    )
    if chain.fixes or chain.check:
        yield "<h3>What helps</h3><ul>"
        yield from (f"<li>check: <code>{_text(command)}</code></li>" for command in chain.check)
        yield from (f"<li>{_text(fix)}</li>" for fix in chain.fixes)
        yield "</ul>"

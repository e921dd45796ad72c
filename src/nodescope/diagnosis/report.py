"""A diagnosis as text a paged engineer can act on in a minute, and as Markdown.

Both say the same in the same order: what broke, what is behind it and how surely,
the chain with the command that shows each link, what it is not, what to do, and
what is missing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding
from nodescope.pictures.text import iso, visible

_LABELS = {
    "job": "job", "event": "event", "queue": "queue", "core": "core", "task": "task",
    "mechanism": "mechanism", "state": "state", "parent": "where", "source": "source",
    "why": "why",
}  # fmt: skip
MOST_RULED_OUT = 6


def render_text(diagnosis: Diagnosis, width: int = 100) -> str:
    """For a terminal."""
    lines: list[str] = []
    if not diagnosis.findings:
        lines.append(
            f"nothing went wrong between {iso(diagnosis.from_ns)} and {iso(diagnosis.to_ns)}"
        )
    for number, finding in enumerate(diagnosis.findings, 1):
        if number > 1:
            lines.append("")
        lines += _text_finding(number, finding, width)
    if diagnosis.missing:
        lines += ["", "missing:"]
        for each in diagnosis.missing:
            lines += _wrapped(f"{each.what}: {each.consequence}; {each.hint}", width, "  ")
    return "\n".join(lines)


def _text_finding(number: int, finding: Finding, width: int) -> Iterator[str]:
    symptom = finding.symptom
    yield from _wrapped(
        f"{number}. {iso(symptom.time_ns)}  {visible(symptom.subject)}: "
        f"{visible(symptom.statement)}",
        width,
        "",
    )
    if finding.repeats:
        times = ", ".join(iso(time_ns) for time_ns in finding.repeats[:5])
        more = "" if len(finding.repeats) <= 5 else f" and {len(finding.repeats) - 5} more"
        yield f"   the same at {times}{more}"
        for line in finding.recurring:
            yield from _wrapped(line, width, "   ")
    if not finding.chains:
        yield "   no cause could be shown from this recording"
    for place, chain in enumerate(finding.chains):
        yield ""
        yield from _text_chain(place, chain, width)
    if finding.ruled_out:
        yield ""
        yield "   not it:"
        for each in finding.ruled_out[:MOST_RULED_OUT]:
            yield from _wrapped(f"- {visible(each.statement)}", width, "     ")


def _text_chain(place: int, chain: Chain, width: int) -> Iterator[str]:
    name = "cause" if place == 0 else "or"
    yield (
        f"   {name}: {chain.root.kind} {visible(chain.root.name)}  "
        f"(confidence {chain.confidence:.0%})"
    )
    if place > 0:
        yield from _wrapped(visible(chain.links[-1].statement), width, "     ")
        return
    for link in chain.links:
        label = _LABELS.get(link.kind, link.kind)
        yield from _wrapped(f"{label:<10}{visible(link.statement)}", width, "     ", " " * 15)
        if link.kind == "mechanism" and chain.meaning:
            yield from _wrapped(chain.meaning, width, " " * 15, " " * 15)
        yield f"{' ' * 15}$ {link.show}"
    weakest = chain.weakest
    yield from _wrapped(
        f"weakest: {_LABELS.get(weakest.kind, weakest.kind)}; would be refuted by "
        f"{visible(weakest.refute)}",
        width,
        "   ",
    )
    if chain.fixes or chain.check:
        yield "   what helps:"
        yield from (f"     - check: $ {command}" for command in chain.check)
        for fix in chain.fixes:
            yield from _wrapped(f"- {fix}", width, "     ")


def _wrapped(text: str, width: int, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        max(40, width),
        initial_indent=indent,
        subsequent_indent=indent + "  " if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_markdown(diagnosis: Diagnosis) -> str:
    """For an incident's page."""
    lines = [f"# Diagnosis, {iso(diagnosis.from_ns)} to {iso(diagnosis.to_ns)}", ""]
    if not diagnosis.findings:
        lines.append("Nothing went wrong.")
    for number, finding in enumerate(diagnosis.findings, 1):
        lines += _markdown_finding(number, finding)
    if diagnosis.missing:
        lines += ["## Missing", ""]
        lines += [
            f"- **{_plain(each.what)}**: {_plain(each.consequence)}; {_plain(each.hint)}"
            for each in diagnosis.missing
        ]
        lines.append("")
    return "\n".join(lines)


def _markdown_finding(number: int, finding: Finding) -> Iterator[str]:
    symptom = finding.symptom
    yield f"## {number}. {_plain(symptom.subject)}: {_plain(symptom.statement)}"
    yield ""
    again = "".join(f", and the same at {iso(time_ns)}" for time_ns in finding.repeats)
    yield f"At {iso(symptom.time_ns)}{again}."
    yield ""
    if finding.recurring:
        yield from (f"- {_plain(line)}" for line in finding.recurring)
        yield ""
    for place, chain in enumerate(finding.chains):
        word = "Cause" if place == 0 else "Or"
        yield (
            f"**{word}: {chain.root.kind} {_plain(chain.root.name)}** "
            f"(confidence {chain.confidence:.0%})"
        )
        yield ""
        if place == 0:
            yield "| | what the recording shows | strength | shown by |"
            yield "|---|---|---|---|"
            for link in chain.links:
                yield (
                    f"| {link.kind} | {_plain(link.statement)} | {link.strength:.1f} | "
                    f"`{link.show}` |"
                )
            yield ""
            if chain.meaning:
                yield f"What this means: {_plain(chain.meaning)}"
                yield ""
            yield (
                f"Weakest link: {chain.weakest.kind}; would be refuted by "
                f"{_plain(chain.weakest.refute)}."
            )
            yield ""
            yield from (f"- check: `{command}`" for command in chain.check)
            yield from (f"- {fix}" for fix in chain.fixes)
            yield ""
    if finding.ruled_out:
        yield "Not it:"
        yield ""
        yield from (f"- {_plain(each.statement)} (`{each.show}`)" for each in finding.ruled_out)
        yield ""


def _plain(text: str) -> str:
    """Names of processes are anybody's text: nothing of them may be markup."""
    shown = visible(text)
    for mark in "\\`*_[]<>|#":
        shown = shown.replace(mark, f"\\{mark}")
    return shown

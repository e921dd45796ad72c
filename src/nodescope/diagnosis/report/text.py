"""A diagnosis as text a paged engineer can act on in a minute, and as Markdown.

Both say the same in the same order: what broke, what is behind it and how surely, what
to do; then the chain with the command that shows each link, what it is not; then what lasts,
and what is missing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Missing
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
    together,
    verdict,
    when,
    word_of,
)
from nodescope.judgement.condition import Condition
from nodescope.pictures.text import visible
from nodescope.records.view import View
from nodescope.records.view_forms import render_command
from nodescope.wall_time import format_moment

MOST_TIMES = 4
LONGEST = 4096  # of a statement or a command


def render_text(diagnosis: Diagnosis, width: int = 100) -> str:
    """For a terminal."""
    lines: list[str] = []
    if diagnosis.silent:
        lines.append(silence(diagnosis))
    if len(diagnosis.findings) > 1:
        lines += [*_overview(diagnosis, width), ""]
    for number, finding in enumerate(diagnosis.findings, 1):
        if number > 1:
            lines.append("")
        lines += _text_finding(number, finding, width, diagnosis.archive)
    if diagnosis.conditions:
        lines += ["", "Conditions:"] if lines else ["Conditions (no incident):"]
        told_of = (
            tuple(_text_condition(each, width, diagnosis.archive)) for each in diagnosis.conditions
        )
        for each in dict.fromkeys(told_of):  # what reads the same is told once
            lines += each
    told = [finding.ends for finding in diagnosis.findings]
    missing = [each for each in diagnosis.missing if each not in told]
    if missing:
        lines += ["", "missing:"]
        for lack in missing:
            lines += _text_missing(lack, width, diagnosis.archive)
    return "\n".join(lines)


def _text_condition(condition: Condition, width: int, archive: Path | None) -> Iterator[str]:
    """Yield what it is, since when and what to do, and the command that shows it."""
    steps = condition_steps(condition, archive)
    todo = f"; do: {steps[0].statement}" if steps else ""
    indent = " " * 11
    said = f"{condition.severity:<9}{statement_of(condition)}"
    yield from _wrapped(said, width, "  ", indent)
    yield from _wrapped(f"{since_of(condition)}{todo}", width, indent, indent)
    yield _command_line(condition.show, archive, 11)


def _text_missing(missing: Missing, width: int, archive: Path | None) -> Iterator[str]:
    yield from _wrapped(f"{missing.what}: {describe_missing(missing)}", width, "  ")
    if missing.show is not None:
        yield _command_line(missing.show, archive, 4)


def _command_line(view: View, archive: Path | None, indent: int) -> str:
    """Return the command that shows it on a line of its own, to be copied whole."""
    return f"{' ' * indent}$ {visible(render_command(view, archive), LONGEST)}"


def _overview(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    yield f"{len(diagnosis.findings)} findings:"
    for number, finding in enumerate(diagnosis.findings, 1):
        said = f"{number}. {headline(finding.symptom)}; {verdict(finding)}"
        yield from _wrapped(said, width, "  ")


def _text_finding(number: int, finding: Finding, width: int, archive: Path | None) -> Iterator[str]:
    symptom = finding.symptom
    yield from _wrapped(f"{number}. {when(symptom)}  {headline(symptom)}", width, "")
    if said := again(finding, MOST_TIMES):
        yield from _wrapped(said, width, "   ")
    yield from _wrapped(verdict(finding), width, "   ")
    best = finding.chains[0] if finding.chains else None
    if best is not None and best.explains:
        yield from _wrapped(f"how:   {path_of(best)}", width, "   ", " " * 10)
        yield from _text_steps(best, width, archive)
    elif finding.ends is not None:
        said = f"next:  {describe_missing(finding.ends)}"
        yield from _wrapped(said, width, "   ", " " * 10)
        if finding.ends.show is not None:
            yield _command_line(finding.ends.show, archive, 10)
    if best is not None:
        yield ""
        yield from _text_evidence(best, width, archive)
    for chain in finding.chains[1:]:
        said = f"or: {chain.root.title}  ({describe_confidence(chain)})"
        yield from ("", *_wrapped(said, width, "   "))
        yield from _wrapped(chain.links[-1].statement, width, "     ")
    if finding.recurring:
        yield from ("", "   around all of these times:")
        for line in finding.recurring:
            yield from _wrapped(f"- {line}", width, "     ")
    if finding.ruled_out:
        yield from ("", "   not it (commands that show this: with --json, or --output FILE.html):")
        for line in together(finding.ruled_out):
            yield from _wrapped(f"- {line}", width, "     ")


def _text_steps(chain: Chain, width: int, archive: Path | None) -> Iterator[str]:
    if not (chain.steps or chain.fixes or chain.check):
        return
    yield f"   what helps ({PROPOSED}):"
    for number, step in enumerate(steps_of(chain, archive), 1):
        yield from _wrapped(f"{number}. {step.statement}", width, "     ", " " * 8)
        if step.command is not None:
            yield f"{' ' * 8}$ {visible(step.command, LONGEST)}"
    for where, command in checks_of(chain, archive):
        yield f"     {where}: $ {visible(command, LONGEST)}"


def _text_evidence(chain: Chain, width: int, archive: Path | None) -> Iterator[str]:
    yield "   evidence:"
    for link in chain.links:
        said = f"{link.kind:<10}{link.statement} (odds {link.odds})"
        yield from _wrapped(said, width, "     ", " " * 15)
        if link.kind == "mechanism" and chain.meaning:
            yield from _wrapped(chain.meaning, width, " " * 15, " " * 15)
        yield _command_line(link.show, archive, 15)
    if len(chain.links) == 1:
        return
    weakest = chain.weakest
    said = f"weakest:  {weakest.kind}; would be refuted by {weakest.refute}"
    yield from _wrapped(said, width, "     ", " " * 15)


def _wrapped(text: str, width: int, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        visible(text, LONGEST),
        max(40, width),
        initial_indent=indent,
        subsequent_indent=indent + "  " if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- Markdown ----------------------------------------------------------------


def render_markdown(diagnosis: Diagnosis) -> str:
    """For an incident's page."""
    lines = [
        f"# Diagnosis, {format_moment(diagnosis.from_ns)} to {format_moment(diagnosis.to_ns)}",
        "",
    ]
    if diagnosis.silent:
        lines += [_plain(sentence(silence(diagnosis))), ""]
    for number, finding in enumerate(diagnosis.findings, 1):
        lines += _markdown_finding(number, finding, diagnosis.archive)
    if diagnosis.conditions:
        lines += ["## Conditions", ""]
        for condition in diagnosis.conditions:
            lines += _markdown_condition(condition, diagnosis.archive)
        lines.append("")
    if diagnosis.missing:
        lines += ["## Missing", ""]
        lines += [
            f"- **{_plain(each.what)}**: {_markdown_missing(each, diagnosis.archive)}"
            for each in diagnosis.missing
        ]
        lines.append("")
    return "\n".join(lines)


def _markdown_condition(condition: Condition, archive: Path | None) -> Iterator[str]:
    said = f"{_plain(statement_of(condition))} ({_plain(since_of(condition))})"
    yield f"- **{condition.severity}**: {said}: {_command(condition.show, archive)}"
    for step in condition_steps(condition, archive):
        command = "" if step.command is None else f": {_code(step.command)}"
        yield f"  - {_prose(step.statement)}{command}"


def _markdown_missing(missing: Missing, archive: Path | None) -> str:
    said = _prose(describe_missing(missing))
    return said if missing.show is None else f"{said}: {_command(missing.show, archive)}"


def _markdown_finding(number: int, finding: Finding, archive: Path | None) -> Iterator[str]:
    symptom = finding.symptom
    yield from (f"## {number}. {_plain(headline(symptom))}", "")
    said = again(finding, len(finding.repeats))
    yield from (f"At {when(symptom)}{f'; {said}' if said else ''}.", "")
    best = finding.chains[0] if finding.chains else None
    if best is None or not best.explains:
        further = "" if finding.ends is None else _markdown_missing(finding.ends, archive)
        yield from (f"**Cause: {UNKNOWN}.** {further}".rstrip(), "")
    else:
        yield from (f"**{word_of(best)}: {_cause(best)}", "", f"How: {_plain(path_of(best))}", "")
        yield from _markdown_steps(best, archive)
    if best is not None:
        yield from _markdown_evidence(best, archive)
    for chain in finding.chains[1:]:
        yield from (f"**Or: {_cause(chain)}", "", _plain(chain.links[-1].statement), "")
    if finding.recurring:
        yield from ("Around all of these times:", "")
        yield from (f"- {_plain(line)}" for line in finding.recurring)
        yield ""
    if finding.ruled_out:
        yield from ("Not it:", "")
        for each in finding.ruled_out:
            shown = "" if each.show is None else f" ({_command(each.show, archive)})"
            yield f"- {_plain(each.statement)}{shown}"
        yield ""


def _cause(chain: Chain) -> str:
    return f"{_plain(name_root(chain))}** ({describe_confidence(chain)})"


def _markdown_steps(chain: Chain, archive: Path | None) -> Iterator[str]:
    if not (chain.steps or chain.fixes or chain.check):
        return
    yield from (f"What helps ({PROPOSED}):", "")
    for step in steps_of(chain, archive):
        yield f"1. {_prose(step.statement)}" + (f": {_code(step.command)}" if step.command else "")
    yield ""
    for where, command in checks_of(chain, archive):
        yield from (f"{where[:1].upper()}{where[1:]}: {_code(command)}", "")


def _markdown_evidence(chain: Chain, archive: Path | None) -> Iterator[str]:
    yield "| | what the recording shows | odds | shown by |"
    yield "|---|---|---|---|"
    for link in chain.links:
        shown = _command(link.show, archive).replace("|", "\\|")
        yield f"| {link.kind} | {_plain(link.statement)} | {link.odds} | {shown} |"
    yield ""
    if chain.meaning:
        yield from (f"What this means: {_plain(chain.meaning)}", "")
    weakest = chain.weakest
    yield f"Weakest link: {weakest.kind}; would be refuted by {_plain(weakest.refute)}."
    yield ""


def _plain(text: str) -> str:
    """Names of processes are anybody's text: nothing of them may be markup."""
    shown = visible(text, LONGEST)
    for mark in "\\`*_[]<>|#":
        shown = shown.replace(mark, f"\\{mark}")
    return shown


def _prose(text: str) -> str:
    """Return a sentence as Markdown; what stands between backticks is code."""
    return "".join(_code(piece) if code else _plain(piece) for piece, code in split_code(text))


def _command(view: View, archive: Path | None) -> str:
    return _code(render_command(view, archive))


def _code(text: str) -> str:
    """A command; one with a backtick in it needs two around it."""
    shown = visible(text, LONGEST)
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"

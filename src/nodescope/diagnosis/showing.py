"""Commands that show a piece of evidence, and on which recording."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Missing
from nodescope.wall_time import format_moment

# Without a moment these look at the machine as it is.
_LIVE = ("audit", "doctor", "zombies")


def moment(time_ns: int) -> str:
    """A wall time as the command line takes it."""
    return format_moment(time_ns)


def around(time_ns: int, seconds: int = 15) -> str:
    """The options for a window around a moment."""
    return f"--at {moment(time_ns)} --around {seconds}s"


def between(from_ns: int, to_ns: int) -> str:
    """The options for a window."""
    return f"--from {moment(from_ns)} --to {moment(to_ns)}"


# -- the recording -----------------------------------------------------------


def with_archive(diagnosis: Diagnosis, archive: Path) -> Diagnosis:
    """The same with every command naming the recording: it is not the one read by default."""
    return replace(
        diagnosis,
        findings=[_finding(each, archive) for each in diagnosis.findings],
        missing=[_missing(each, archive) for each in diagnosis.missing],
    )


def on_archive(command: str, archive: Path) -> str:
    """A command of ours on a recording; other text, and what looks at the machine, stays."""
    words = command.split()
    if words[:1] != ["nodescope"] or (words[1:2] and words[1] in _LIVE and "--at" not in words):
        return command
    return f"{command} --archive {shlex.quote(str(archive))}"


def _finding(finding: Finding, archive: Path) -> Finding:
    return replace(
        finding,
        ends=None if finding.ends is None else _missing(finding.ends, archive),
        chains=[_chain(each, archive) for each in finding.chains],
        ruled_out=[
            replace(each, show=on_archive(each.show, archive)) for each in finding.ruled_out
        ],
    )


def _chain(chain: Chain, archive: Path) -> Chain:
    links = tuple(replace(each, show=on_archive(each.show, archive)) for each in chain.links)
    check = tuple(on_archive(each, archive) for each in chain.check)
    steps = tuple(
        replace(each, command=on_archive(each.command, archive)) if each.command else each
        for each in chain.steps
    )
    return replace(chain, links=links, check=check, steps=steps)


def _missing(missing: Missing, archive: Path) -> Missing:
    return replace(missing, hint=on_archive(missing.hint, archive))

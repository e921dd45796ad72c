"""The part of `nodescope audit --root` that judges the first boot of an image."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import SourceAbsent, UsageError

if TYPE_CHECKING:
    from nodescope.judgement.allow_list import AllowList
    from nodescope.judgement.image_gate import ImageGate
    from nodescope.judgement.verdict import Audit
    from nodescope.sources.systemd.unit import Unit

_BASE_SYSTEM = "which units belong to the base system"


def show_image(args: argparse.Namespace, audit: Audit, units: Mapping[str, Unit]) -> int | None:
    """Print an image's findings, and return the exit code; None if a system runs at that root."""
    from dataclasses import replace

    from nodescope.judgement.image_gate import FIRST_BOOT, judge_image
    from nodescope.judgement.image_starts import find_starts
    from nodescope.judgement.verdict import sort_findings
    from nodescope.sources.image.image_survey import read_image
    from nodescope.sources.systemd.locations import bus_addresses

    places = options.places(args)
    allow = _read_allow_list(args.allow)
    if bus_addresses(places) and not (args.allow or args.format):
        return None  # it runs: what it starts, it started
    missing, unjudged = list(audit.not_observed), list(audit.unjudged)
    starts = []
    try:
        survey = read_image(args.root, units)
    except SourceAbsent as error:
        missing.append(str(error))
        unjudged.append(FIRST_BOOT)
    else:
        missing += survey.missing
        starts = find_starts(survey)
        if survey.graph.default is None:
            missing.append("no default target, so that no boot of this image starts anything")
        if survey.installed.unreadable and not survey.installed.packages:
            unjudged.append(_BASE_SYSTEM)
        elif not survey.installed.packages:
            missing.append("no records of dpkg or rpm, so that no unit counts as the base system's")
    gate = judge_image(audit.findings, starts, allow)
    gate = replace(gate, findings=sort_findings(gate.findings))
    judged = replace(
        audit, findings=gate.findings, not_observed=tuple(missing), unjudged=tuple(unjudged)
    )
    _print(args, gate, judged)
    if _BASE_SYSTEM in unjudged:
        return 2  # findings on units of the base system mean nothing
    return {True: 0, False: 1, None: 2}[judged.healthy]


def _read_allow_list(path: Path | None) -> AllowList:
    from nodescope.judgement.allow_list import AllowList, parse_allow_list

    if path is None:
        return AllowList()
    try:
        return parse_allow_list(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"--allow {path}: {error.strerror}", hint="name a file") from error


def _print(args: argparse.Namespace, gate: ImageGate, audit: Audit) -> None:
    from nodescope.pictures.audit import findings_document
    from nodescope.pictures.image_gate import gate_document, render_gate

    form = args.format
    if form is None and args.json:
        options.print_json(findings_document(audit.findings))
        for missing in audit.not_observed:
            print(f"nodescope: not seen: {missing}", file=sys.stderr)
    elif form in (None, "text"):
        print(render_gate(gate, audit.not_observed, audit.unjudged))
    elif form == "json":
        options.print_json(gate_document(gate, str(args.root), audit.not_observed, audit.healthy))
    else:
        from nodescope.pictures.finding_formats import junit_document, sarif_document

        if form == "sarif":
            options.print_json(sarif_document(gate, audit.unjudged))
        else:
            print(junit_document(gate, audit.unjudged))

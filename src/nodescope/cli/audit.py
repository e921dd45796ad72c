"""`nodescope audit`: units and containers that fail, loop, hide a loop or serve nobody."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS

if TYPE_CHECKING:
    from nodescope.judgement.verdict import Audit
    from nodescope.sources.containers.container import ContainerHappening
    from nodescope.sources.places import Places
    from nodescope.sources.systemd.unit import Unit

_WATCH_NS = 20 * SECOND_NS
FORMATS = ("text", "json", "sarif", "junit")


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "audit",
        run,
        description="Examine systemd units and containers, and name those that fail, crash-loop\n"
        "(openly or inside a running unit), never succeeded since boot, do not start, or\n"
        "that nothing uses; with the evidence for each. Healthy ones are not named. Needs no\n"
        "recording, but takes from one what container runtimes forget. Exits 0 when nothing is\n"
        "wrong, 1 with findings, 2 if it could not run or could not see the states of units or\n"
        "the containers of a runtime that is there. With --root, what the image's first boot\n"
        "starts and nobody asked for is a finding, too, unless --allow allows it.",
        examples=[
            ("nodescope audit", "this node, now"),
            (
                "nodescope audit --root /mnt/image",
                "a mounted image: also what its first boot starts and nobody asked for",
            ),
            (
                "nodescope audit --root /mnt/image --allow allow.toml --format sarif",
                "the same as a gate of an image pipeline",
            ),
            (
                "nodescope audit --systemd-bus unix:path=/host/run/dbus/system_bus_socket",
                "the host, from a container",
            ),
            (
                "nodescope audit --at 12:00:05 --unit ecs.service",
                "one unit as it was then, from the recording",
            ),
            ("nodescope audit --json", "for scripts"),
        ],
    )
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help=f"judge this moment of a recording instead of the node now: {options.WHEN_HELP}",
    )
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        metavar="NAME",
        help="with --at: show only this unit, with its recorded facts; repeatable",
    )
    options.add_archive(parser)
    options.add_places(parser, root=True)
    parser.add_argument(
        "--allow",
        type=Path,
        metavar="FILE",
        help="with --root: what may start, with reasons (TOML or plain lines; see docs/audit.md)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="with --root: print the findings for a pipeline; json has more than --json",
    )
    parser.add_argument(
        "--watch",
        type=options.duration,
        default=_WATCH_NS,
        metavar="TIME",
        help="look inside running units for at most so long; ends early when nothing there "
        "is young (default: 20s)",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look, judge, print."""
    if args.at is not None:
        return _show_recorded(args)
    if args.unit:
        raise UsageError("--unit needs --at", hint="an audit names what is wrong by itself")
    if args.root is None and (args.allow or args.format):
        option = "--allow" if args.allow else "--format"
        raise UsageError(f"{option} needs --root", hint="it is for images; --json prints JSON")
    from nodescope.errors import SourceAbsent
    from nodescope.judgement.verdict import Audit, sort_findings
    from nodescope.pictures.audit import findings_document, render_audit

    places = options.places(args)
    seen: list[Audit] = []
    absent: list[SourceAbsent] = []
    known: dict[str, Unit] = {}
    looks = (partial(_units, places, args.watch, known), partial(_containers, places, args))
    for look in looks:
        try:
            seen.append(look())
        except SourceAbsent as error:
            absent.append(error)
    if not seen:  # nothing to look at: that is no good health
        raise absent[0]
    audit = Audit(
        sort_findings(finding for part in seen for finding in part.findings),
        (*(each for part in seen for each in part.not_observed), *map(str, absent)),
        tuple(each for part in seen for each in part.unjudged),
    )
    if args.root is not None:
        from nodescope.cli.audit_image import show_image

        code = show_image(args, audit, known)
        if code is not None:
            return code
    if args.json:
        options.print_json(findings_document(audit.findings))
        for missing in audit.not_observed:
            print(f"nodescope: not seen: {missing}", file=sys.stderr)
    else:
        print(render_audit(audit))
    return _exit_code(audit)


def _exit_code(audit: Audit) -> int:
    return {True: 0, False: 1, None: 2}[audit.healthy]


def _show_recorded(args: argparse.Namespace) -> int:
    """Judge what a recording knew at a moment; nothing of this node is looked at."""
    from dataclasses import replace

    from nodescope.cli.moment import open_moment
    from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
    from nodescope.pictures.audit import recorded_document, render_audit, render_units

    recording, at_ns = open_moment(args)
    known = audit_recording(recording, at_ns)
    units = []
    if isinstance(known, RecordedAudit) and args.unit:
        units = sorted((row for row in known.units if row.unit in args.unit), key=lambda r: r.unit)
        found = known.audit.findings
        mine = [each for each in found if each.kind == "unit" and each.name in args.unit]
        known = replace(known, audit=replace(known.audit, findings=mine))
    if not isinstance(known, RecordedAudit) or (args.unit and not units):
        which = ", ".join(args.unit) or "units or containers"
        raise UsageError(
            f"nothing was recorded of {which} up to {args.at!r}",
            hint=f"see `{options.status_command(args)}` for what was",
        )
    if args.json:
        options.print_json(recorded_document(known, units))
    else:
        facts = f"{render_units(units)}\n\n" if units else ""
        print(f"{facts}{render_audit(known.audit, recorded=True)}")
    return _exit_code(known.audit)


def _units(places: Places, watch_ns: int, known: dict[str, Unit]) -> Audit:
    """Judge units, and keep them in `known`; an image that does not run has only their files."""
    from nodescope.judgement.unit_insides import cgroups_to_watch, is_settled
    from nodescope.judgement.units import audit_units
    from nodescope.judgement.verdict import UNIT_STATES, Audit
    from nodescope.sources.systemd.survey import read_survey
    from nodescope.sources.systemd.unit_processes import watch_insides

    survey = read_survey(places)
    known |= survey.units
    insides = watch_insides(places, cgroups_to_watch(survey), watch_ns, is_settled)
    blind = places.root == Path("/") and not survey.live and not survey.lives.of
    unjudged = (UNIT_STATES,) if blind else ()
    return Audit(list(audit_units(survey, insides)), tuple(survey.missing), unjudged)


def _containers(places: Places, args: argparse.Namespace) -> Audit:
    """Judge containers; `SourceAbsent` where no runtime is."""
    from nodescope.judgement.containers import audit_containers
    from nodescope.judgement.loop_rules import CONTAINER_WITHIN_NS
    from nodescope.judgement.verdict import Audit
    from nodescope.sources.containers.runtimes import Runtimes

    now_ns = time.time_ns()
    runtimes = Runtimes(places)
    try:
        polled = runtimes.poll(now_ns)
        recent = runtimes.read_recent(now_ns, now_ns - CONTAINER_WITHIN_NS)
        happenings = [*recent, *polled.happenings, *_recorded(args, now_ns)]
        found = audit_containers(list(runtimes.containers.values()), happenings, now_ns)
        unjudged = tuple(f"containers of {runtime}" for runtime in polled.failed)
        return Audit(list(found), tuple(map(str, polled.failed.values())), unjudged)
    finally:
        runtimes.close()


def _recorded(args: argparse.Namespace, now_ns: int) -> list[ContainerHappening]:
    """Read container events from a recording of this node: not every runtime keeps them."""
    if args.root is not None and args.archive is None:
        return []  # another system's
    path = options.archive_path(args)
    if args.archive is None and not path.exists():
        return []

    from nodescope.errors import ArchiveError
    from nodescope.judgement.containers import read_happenings
    from nodescope.recording.recording import Recording

    try:
        return read_happenings(Recording.open(path), now_ns)
    except ArchiveError as error:
        if args.archive is not None:
            raise
        print(f"nodescope: not seen: {error}", file=sys.stderr)
        return []

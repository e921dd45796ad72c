"""`nodescope fix validate` and `nodescope fix forecast`: did it work, and will it come back?"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import NodescopeError, UsageError
from nodescope.quantities import MINUTE_NS, SECOND_NS

if TYPE_CHECKING:
    from nodescope.remedy.plan import Plan
    from nodescope.remedy.proof.applied import Applied
    from nodescope.remedy.proof.assess import Verdicts

_FOR_NS = 10 * MINUTE_NS
_REPORT_NS = 10 * SECOND_NS


def add_subcommands(commands: options.Commands) -> None:
    """Declare both."""
    _add_validate(commands)
    _add_forecast(commands)


def _add_validate(commands: options.Commands) -> None:
    parser = options.add_command(
        commands,
        "validate",
        run_validate,
        description="Judge whether an applied plan worked, by two verdicts. Mechanism stopped:\n"
        "what made the trouble is over, with the probability that a node which was not mended\n"
        "looks like this by chance. Outcome improved: resets and failed jobs became rarer,\n"
        "or how many node-hours are still needed to know. Reads the recording as it grows,\n"
        "and the node itself. Ctrl-C prints the verdict so far. Exits 0 only if the mechanism\n"
        "is proven and what the plan predicted came, 1 if it is refuted or unknown, 2 if it\n"
        "could not run.",
        examples=[
            ("nodescope fix validate plan.json", "for ten minutes after the plan"),
            ("nodescope fix validate plan.json --for 1h --json", "longer, for scripts"),
            (
                "nodescope fix validate plan.json --archive incident.bundle --recorded",
                "by what was recorded, without a look at this node",
            ),
        ],
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="the plan that was applied")
    options.add_archive(parser)
    parser.add_argument(
        "--for",
        dest="for_ns",
        type=options.duration,
        default=_FOR_NS,
        metavar="TIME",
        help="observe for so long after the plan was applied (default: 10m)",
    )
    parser.add_argument(
        "--applied",
        metavar="WHEN",
        help=f"when it was applied, if its journal is elsewhere: {options.WHEN_HELP}",
    )
    parser.add_argument(
        "--recorded", action="store_true", help="judge by the recording alone, not by this node"
    )
    options.add_places(parser, root=True)
    options.add_json(parser)


def _add_forecast(commands: options.Commands) -> None:
    parser = options.add_command(
        commands,
        "forecast",
        run_forecast,
        description="Predict when zombies pass the warning and the critical threshold: on this\n"
        'node, and on its replacement from the same image, with an interval. "Does not grow" and\n'
        '"cannot say" are answers. Exits 0 if nothing is predicted to pass, 1 if something\n'
        "is or has, 2 if it could not run.",
        examples=[
            ("nodescope fix forecast", "from the recording of this node"),
            ("nodescope fix forecast --root /mnt/image", "will a node of this image get there?"),
        ],
    )
    options.add_archive(parser)
    parser.add_argument(
        "--root",
        type=Path,
        metavar="IMAGE",
        help="mounted image of the replacement (default: units as recorded on this node)",
    )
    options.add_json(parser)


def run_validate(args: argparse.Namespace) -> int:
    """Read the plan, observe, judge, print."""
    from nodescope.remedy.fix_status import write_verdict
    from nodescope.remedy.journal import fixes_folder
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.plan_documents import read_plan
    from nodescope.remedy.proof.validate import Validation
    from nodescope.remedy.proof.verdict_words import render_verdicts, verdicts_document

    plan = read_plan(args.plan)
    places = options.places(args)
    node = None if args.recorded else NodeAccess(places)
    archive = _archive(args, plan)
    if archive is None and node is None:
        raise UsageError("--recorded needs a recording", hint="--archive PATH names it")
    folder = fixes_folder(places)
    applied = _applied(args, plan, folder, archive)
    validation = Validation(plan, applied, archive, node)
    try:
        verdicts = validation.run(args.for_ns, _Reporter(folder, plan.id))
    finally:
        if node is not None:
            node.close()
    write_verdict(folder, plan.id, verdicts_document(verdicts))
    if args.json:
        options.print_json(verdicts_document(verdicts))
    else:
        print(render_verdicts(verdicts))
    return 0 if verdicts.proven else 1


def _archive(args: argparse.Namespace, plan: Plan) -> Path | None:
    """Return the recording to read: the one named, else the plan's, if it can be opened."""
    from nodescope.recording.recording import Recording

    if args.archive is not None:
        Recording.open(args.archive)  # what was asked for must be there
        return options.archive_path(args)
    for path in dict.fromkeys([Path(plan.archive)] if plan.archive else []):
        try:
            Recording.open(path)
        except NodescopeError as error:
            print(f"nodescope: the plan's recording is not read: {error}", file=sys.stderr)
        else:
            return path
    return None


def _applied(args: argparse.Namespace, plan: Plan, folder: Path, archive: Path | None) -> Applied:
    from nodescope.cli.moment import parse_time_ns
    from nodescope.recording.recording import Recording
    from nodescope.remedy.journal import SUFFIX
    from nodescope.remedy.proof.applied import Applied, find_applied, read_applied

    recording = None if archive is None else Recording.open(archive)
    if args.applied is None:
        recorded = None
        if recording is not None and not (folder / f"{plan.id}{SUFFIX}").exists():
            recorded = find_applied(recording, plan.id)
        return recorded or read_applied(folder, plan.id)
    extent = None if recording is None else recording.extent
    at_ns = parse_time_ns(args.applied, extent, time.time_ns())
    return Applied(at_ns, at_ns)


class _Reporter:
    """Prints the verdict so far now and then, and leaves it beside the journal for the page."""

    def __init__(self, folder: Path, plan: str) -> None:
        self._folder = folder
        self._plan = plan
        self._said_ns = 0
        self._verdict = ""

    def __call__(self, verdicts: Verdicts) -> None:
        from nodescope.remedy.fix_status import write_verdict
        from nodescope.remedy.proof.verdict_words import describe_progress, verdicts_document

        now_ns = time.monotonic_ns()
        changed = verdicts.mechanism.verdict != self._verdict
        if changed or now_ns - self._said_ns >= _REPORT_NS:
            self._said_ns, self._verdict = now_ns, verdicts.mechanism.verdict
            print(f"nodescope: {describe_progress(verdicts)}", file=sys.stderr)
            write_verdict(self._folder, self._plan, verdicts_document(verdicts))


def run_forecast(args: argparse.Namespace) -> int:
    """Read, predict, print."""
    from nodescope.recording.recording import Recording
    from nodescope.remedy.proof.forecast import read_forecast
    from nodescope.remedy.proof.verdict_words import forecast_document, render_forecast

    forecast = read_forecast(Recording.open(options.archive_path(args)), args.root)
    if forecast is None:
        raise UsageError(
            "memory cgroups were not recorded there",
            hint=f"see `{options.status_command(args)}` for what was",
        )
    if args.json:
        options.print_json(forecast_document(forecast))
    else:
        print(render_forecast(forecast))
    passes = (*forecast.node, *forecast.replacement)
    return int(any(each.will in ("passed", "will pass") for each in passes))

"""`nodescope fix plan`: turn a diagnosis into a plan, and show it; nothing is changed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import UsageError

if TYPE_CHECKING:
    from nodescope.records.json import JsonObject
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.plan import Baseline, Plan
    from nodescope.remedy.proposals import Proposals


def add_subcommands(commands: options.Commands) -> None:
    """Declare `plan`."""
    parser = options.add_command(
        commands,
        "plan",
        run,
        description="Turn what a diagnosis proposes into an ordered plan for this node: every\n"
        "unit, file and setting it would touch, why, what it will free, how each step\n"
        "is undone, and what is refused. Changes nothing. Exits 0 with a plan, 1 if\n"
        "there is nothing to do or nothing is allowed, 2 if it could not run.",
        examples=[
            ("nodescope fix plan", "from the recording of this node"),
            ("nodescope fix plan --json > plan.json", "to be reviewed and applied"),
            ("nodescope fix plan --from diagnosis.json", "from a diagnosis made before"),
            ("nodescope fix plan --unit ecs.service", "stop this unit and keep it off"),
            ("nodescope fix plan --elsewhere ansible", "the same change for review"),
        ],
    )
    options.add_archive(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--from", dest="diagnosis", type=Path, metavar="FILE",
        help="take the diagnosis from this file (`nodescope diagnose --json`)",
    )  # fmt: skip
    source.add_argument("--unit", metavar="UNIT", help="stop this unit and keep it off")
    source.add_argument("--container", metavar="NAME", help="stop this container and keep it off")
    parser.add_argument(
        "--i-know", action="append", default=[], metavar="NAME",
        help="allow a step that the guard refuses for this unit or container; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--elsewhere", metavar="FORM",
        help="print the same change in another form, for review: drop-in, preset, cloud-init, "
        "ansible, packer, dockerfile, kubernetes",
    )  # fmt: skip
    options.add_places(parser, root=True)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose or read, plan, print."""
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.plan_documents import plan_document
    from nodescope.remedy.plan_words import render_plan

    node = NodeAccess(options.places(args))
    try:
        plan = _plan(args, node)
    finally:
        node.close()
    if args.elsewhere is not None:
        print(_form(plan, args.elsewhere))
    elif args.json:
        options.print_json(plan_document(plan))
    else:
        print(render_plan(plan, options.terminal_width()))
    return 0 if plan.steps else 1


def _plan(args: argparse.Namespace, node: NodeAccess) -> Plan:
    from nodescope.remedy.planner import Wishes, make_plan

    proposals, baselines = _proposals(args)
    archive = None if args.unit or args.container else str(options.archive_path(args).absolute())
    wishes = Wishes(frozenset(args.i_know), archive, baselines)
    return make_plan(proposals, node, wishes)


def _proposals(args: argparse.Namespace) -> tuple[Proposals, tuple[Baseline, ...]]:
    from nodescope.remedy.proposals import read_proposals, wish_to_stop

    if args.unit is not None:
        return wish_to_stop("unit", args.unit), ()
    if args.container is not None:
        return wish_to_stop("container", args.container), ()
    if args.diagnosis is not None:
        return read_proposals(_read_diagnosis(args.diagnosis)), ()
    return _diagnose(args)


def _read_diagnosis(path: Path) -> JsonObject:
    from nodescope.errors import SourceError
    from nodescope.wire.json_fields import parse_object, read_bounded

    try:
        return parse_object(read_bounded(path, 64 << 20), path)
    except SourceError as error:
        raise UsageError(
            f"{path} is not a diagnosis: {error.reason}",
            hint="make one by `nodescope diagnose --json > diagnosis.json`",
        ) from error


def _diagnose(args: argparse.Namespace) -> tuple[Proposals, tuple[Baseline, ...]]:
    """Diagnose the whole recording, and read what `fix validate` will compare with."""
    import json

    from nodescope.diagnosis.diagnose import diagnose
    from nodescope.diagnosis.report.document import diagnosis_document
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window
    from nodescope.remedy.baselines import read_baselines
    from nodescope.remedy.proposals import read_proposals

    recording = Recording.open(options.archive_path(args))
    extent = recording.extent
    if extent is None:
        raise UsageError("nothing is recorded there", hint="`nodescope record` records this node")
    print("nodescope: diagnosing the recording", file=sys.stderr)
    diagnosis = diagnose(recording, Window(extent.from_ns, extent.to_ns))
    diagnosis.archive = options.named_archive(args)
    document = json.loads(json.dumps(diagnosis_document(diagnosis)))
    proposals = read_proposals(document)
    return proposals, read_baselines(recording, proposals, extent.to_ns)


def _form(plan: Plan, form: str) -> str:
    forms = plan.elsewhere or {}
    if form not in forms:
        there = f"there are {', '.join(forms)}" if forms else "this plan has none"
        raise UsageError(f"no form {form!r}", hint=there)
    return forms[form]

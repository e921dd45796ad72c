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
    from nodescope.remedy.plan import Plan


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
    parser.add_argument(
        "--from", dest="diagnosis", type=Path, metavar="FILE",
        help="take the diagnosis from this file (`nodescope diagnose --json`)",
    )  # fmt: skip
    for option, what in (("--unit", "unit"), ("--container", "container")):
        parser.add_argument(
            option, action="append", default=[], metavar="NAME",
            help=f"stop this {what} and keep it off, whatever a diagnosis says; repeatable",
        )  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the plan here, as JSON")
    parser.add_argument(
        "--i-know", action="append", default=[], metavar="NAME",
        help="allow a step that the guard refuses for this unit or container; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--elsewhere", metavar="FORM",
        help="print the same change in another form, for review: preset, drop-in, cloud-init, "
        "ansible, packer, dockerfile, kubernetes",
    )  # fmt: skip
    parser.add_argument(
        "--nodes", type=Path, metavar="FILE",
        help="with --elsewhere kubernetes: the nodes, from `kubectl get nodes -o json`",
    )  # fmt: skip
    parser.add_argument(
        "--share", type=options.percent, default=0.1, metavar="PERCENT",
        help="with --elsewhere kubernetes: nodes of a zone, and of a cause, that are worked on at "
        "a time; one at least, never all (default: 10%%)",
    )  # fmt: skip
    parser.add_argument(
        "--image", default="nodescope", metavar="IMAGE",
        help="with --elsewhere kubernetes: the image of Nodescope (default: nodescope)",
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
    if args.output is not None:
        _write(plan, args.output)
    if args.elsewhere is not None:
        print(_form(plan, args))
    elif args.json:
        options.print_json(plan_document(plan))
    else:
        print(render_plan(plan, options.terminal_width()))
    if not plan.steps and (args.json or args.output is not None):
        print("nodescope: the plan has no steps: nothing to do, or nothing is allowed",
              file=sys.stderr)  # fmt: skip
    return 0 if plan.steps else 1


def _plan(args: argparse.Namespace, node: NodeAccess) -> Plan:
    from nodescope.remedy.planner import Wishes, make_plan
    from nodescope.remedy.proposals import read_proposals, wish_to_stop
    from nodescope.remedy.recorded_plan import why_not_boot

    i_know = frozenset(args.i_know)
    if args.unit or args.container:
        if args.diagnosis is not None:
            raise UsageError("--from and --unit or --container exclude each other")
        return make_plan(wish_to_stop(args.unit, args.container), node, Wishes(i_know))
    if args.diagnosis is not None:
        document = _read_json(args.diagnosis)
        proposals = read_proposals(document)
        if (why := why_not_boot(document.get("boot"), node)) is not None:
            raise UsageError(
                f"{args.diagnosis}: {why}",
                hint="a plan is made on the node, in the boot that was diagnosed",
            )
        return make_plan(proposals, node, Wishes(i_know))
    return _plan_recording(args, node)


def _plan_recording(args: argparse.Namespace, node: NodeAccess) -> Plan:
    from nodescope.recording.recording import Recording
    from nodescope.remedy.recorded_plan import plan_recording

    archive = options.archive_path(args)
    recording = Recording.open(archive)
    print("nodescope: diagnosing the recording", file=sys.stderr)
    return plan_recording(recording, archive, node, frozenset(args.i_know))


def _read_json(path: Path) -> JsonObject:
    from nodescope.errors import SourceError
    from nodescope.wire.json_fields import parse_object, read_bounded

    try:
        return parse_object(read_bounded(path, 64 << 20), path)
    except SourceError as error:
        raise UsageError(f"{path} cannot be read as JSON: {error.reason}") from error


def _write(plan: Plan, path: Path) -> None:
    """Write a plan that nobody else can read or replace on the way."""
    import json
    import os

    from nodescope.remedy.plan_documents import plan_document

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(plan_document(plan), file, indent=2)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _form(plan: Plan, args: argparse.Namespace) -> str:
    if args.elsewhere == "kubernetes":
        return _rollout(plan, args)
    forms = plan.elsewhere or {}
    if args.elsewhere not in forms:
        there = ", ".join((*forms, "kubernetes"))
        raise UsageError(f"no form {args.elsewhere!r} of this plan", hint=f"there are {there}")
    return forms[args.elsewhere]


def _rollout(plan: Plan, args: argparse.Namespace) -> str:
    """Return the objects of a rollout; its waves and what is left out go to stderr."""
    from nodescope.remedy.elsewhere.kubernetes import parse_nodes, render_kubernetes
    from nodescope.remedy.elsewhere.rollout import plan_rollout

    if args.nodes is None:
        raise UsageError(
            "--elsewhere kubernetes needs --nodes FILE",
            hint="make it by `kubectl get nodes -o json > nodes.json`",
        )
    rollout = plan_rollout(parse_nodes(_read_json(args.nodes)), args.share)
    for number, wave in enumerate(rollout.waves, 1):
        named = ", ".join(node.name for node in wave)
        print(f"nodescope: wave {number}: {named}", file=sys.stderr)
    for each in rollout.blocked:
        print(f"nodescope: not in any wave: {each.name}: {each.reason}", file=sys.stderr)
    return render_kubernetes(plan, rollout, args.image, "nodescope")

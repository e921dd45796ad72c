"""`nodescope experiment`: compare a mitigation across nodes, and say when to stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nodescope.cli import options
from nodescope.errors import UsageError


def add_parser(commands: options.Commands) -> None:
    """Declare the command and its subcommands."""
    parser = options.add_command(
        commands,
        "experiment",
        run,
        description="Compare mitigations across nodes: choose at random which node gets which,\n"
        "say before the start how many node-hours it takes, and judge by exact rates and by\n"
        "an e-process that may be looked at at any time. Changes nothing on any node.",
        examples=[
            ("nodescope experiment templates", "the mitigations that people try first"),
            (
                "nodescope experiment plan --nodes nodes.csv --arm the-fix --json > plan.json",
                "who gets what, and how long it takes",
            ),
            ("nodescope experiment status plan.json events.csv", "enough evidence yet?"),
        ],
    )
    parts = parser.add_subparsers(metavar="SUBCOMMAND", prog="nodescope experiment")
    _add_templates(parts)
    _add_plan(parts)
    _add_status(parts)


def _add_templates(parts: options.Commands) -> None:
    parser = options.add_command(
        parts,
        "templates",
        run_templates,
        description="List the mitigations that can be named as an arm, with what each changes and\n"
        "how it is taken back.",
        examples=[("nodescope experiment templates --json", "for scripts")],
    )
    options.add_json(parser)


def _add_plan(parts: options.Commands) -> None:
    parser = options.add_command(
        parts,
        "plan",
        run_plan,
        description="Assign nodes to arms at random, within their zone and among nodes of like\n"
        "boot age, and say how many node-hours the comparison takes. Exits 0 with a plan, 1 if\n"
        "the nodes cannot show the effect within --longest, 2 if it could not run.",
        examples=[
            (
                "nodescope experiment plan --nodes nodes.csv --arm huge-pages --arm the-fix",
                "two mitigations against doing nothing",
            ),
        ],
    )
    parser.add_argument(
        "--nodes",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV or JSON: name, zone, boot_age_h, events, node_hours (the last two: the past)",
    )
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="NAME",
        help="a mitigation, by its template or any name of yours; repeatable",
    )
    parser.add_argument(
        "--reduction",
        type=float,
        default=5.0,
        metavar="TIMES",
        help="the reduction to find: 5 is one fifth of the events (default: 5)",
    )
    parser.add_argument(
        "--power",
        type=options.percent,
        default=0.8,
        metavar="PERCENT",
        help="how often it should be found if it is there (default: 80%%)",
    )
    parser.add_argument(
        "--longest",
        type=options.duration,
        default=28 * 86_400 * 10**9,
        metavar="TIME",
        help="the longest that you would wait (default: 28d)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="NUMBER", help="of the random assignment, to make it again"
    )
    options.add_json(parser)


def _add_status(parts: options.Commands) -> None:
    parser = options.add_command(
        parts,
        "status",
        run_status,
        description="Judge a running experiment by what its nodes did: rates by arm, exact rate\n"
        "ratios with their interval, and the e-value of each arm, which may be looked at\n"
        "every day. Exits 0 if an arm is shown to help, 1 if none is so far, 2 if it could\n"
        "not run.",
        examples=[
            ("nodescope experiment status plan.json events.csv", "exposures and events per day"),
            ("nodescope experiment status plan.json recordings/", "archives or bundles of nodes"),
        ],
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="`experiment plan --json`")
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="CSV or JSON: node, day, node_hours, events; or a folder of recordings, one per node",
    )
    options.add_json(parser)


def run(_args: argparse.Namespace) -> int:
    """Refuse to run without a subcommand."""
    raise UsageError("experiment needs a subcommand", hint="see `nodescope experiment --help`")


def run_templates(args: argparse.Namespace) -> int:
    """Print the templates."""
    from nodescope.remedy.experiment.reports import render_templates, templates_document

    if args.json:
        options.print_json(templates_document())
    else:
        print(render_templates())
    return 0


def run_plan(args: argparse.Namespace) -> int:
    """Read the nodes, assign, print."""
    import random

    from nodescope.remedy.experiment.design import design_experiment
    from nodescope.remedy.experiment.files import read_nodes
    from nodescope.remedy.experiment.reports import design_document, render_design

    if not args.arm:
        raise UsageError(
            "no --arm is named", hint="`nodescope experiment templates` lists mitigations"
        )
    if args.reduction <= 1:
        raise UsageError("--reduction is not above 1", hint="5 is one fifth of the events")
    if not 0 < args.power < 1:
        raise UsageError("--power is not below 100%", hint="80% is usual")
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    design = design_experiment(
        read_nodes(args.nodes), args.arm, 1 / args.reduction, args.power, seed
    )
    longest_h = args.longest / 3.6e12
    if args.json:
        options.print_json(design_document(design))
    else:
        print(render_design(design))
    if design.hours_needed is None or design.hours_needed > longest_h:
        print(
            "nodescope: these nodes cannot show it within --longest; add nodes, look for a larger "
            "reduction, or wait longer",
            file=sys.stderr,
        )
        return 1
    return 0


def run_status(args: argparse.Namespace) -> int:
    """Read what happened, judge, print."""
    from nodescope.remedy.experiment.files import read_design, read_exposures
    from nodescope.remedy.experiment.reports import render_status, status_document
    from nodescope.remedy.experiment.status import judge_experiment

    design = read_design(args.plan)
    status = judge_experiment(design, read_exposures(args.data))
    if args.json:
        options.print_json(status_document(status))
    else:
        print(render_status(status))
    return 0 if any(each.shown for each in status.comparisons) else 1

"""`nodescope lab`: reproduce an incident for real, in a closed place, and clean up."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options

if TYPE_CHECKING:
    from nodescope.lab.scenario import ScenarioRun


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "lab",
        run,
        description="Run scenarios that are real on this kernel (simulated parts are named in\n"
        "the truth beside the archive), each with a healthy twin; `synthetic` writes the\n"
        "story of a 96-core node by a script. Every change is written down first and\n"
        "undone at the end; `clean` undoes what killed runs left.",
        examples=[
            ("nodescope lab list", "the scenarios"),
            ("nodescope lab run zombie-agent --record /tmp/lab", "the whole story, recorded"),
            (
                "nodescope lab run zombie-agent --record /tmp/lab --fix",
                "then fix and undo it",
            ),
            ("nodescope lab run zombies --healthy --record /tmp/well", "the healthy twin"),
            ("nodescope lab run task-limit --seed 7 --record /tmp/tasks", "a run made again"),
            ("nodescope lab synthetic --record /tmp/story", "96 cores, 12 hours: synthetic"),
            ("nodescope lab clean", "undo what a killed run left"),
        ],
    )
    parser.add_argument("action", choices=("list", "run", "synthetic", "clean"), metavar="ACTION",
                        help="list, run, synthetic or clean")  # fmt: skip
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="scenario to run")
    parser.add_argument("--record", type=Path, metavar="DIR", help="record into this new folder")
    parser.add_argument(
        "--strength", type=options.positive, metavar="N",
        help="number of zombies or seconds, see `list` (default: the scenario's own)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=options.positive, metavar="N",
        help="choose names, limits and times as a run with this seed did (default: new ones)",
    )  # fmt: skip
    parser.add_argument("--healthy", action="store_true", help="run the healthy twin instead")
    parser.add_argument(
        "--plan", action="store_true", help="while it still runs: plan the fix, and show it"
    )
    parser.add_argument(
        "--fix", action="store_true",
        help="while it still runs: plan the fix, apply, validate and undo it; exits 1 if it was "
        "not proven",
    )  # fmt: skip
    parser.add_argument(
        "--yes",
        action="store_true",
        help="confirm that this is a test machine (or set NODESCOPE_LAB_YES=1)",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    actions = {"list": _list, "run": _run, "synthetic": _synthetic, "clean": _clean}
    return actions[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from nodescope.lab.catalogue import SCENARIOS

    if args.json:
        options.print_json([
            {"name": each.name, "help": each.help, "strength": each.strength,
             "least": each.least, "most": each.most, "unit": each.unit, "decoy": each.decoy}
            for each in SCENARIOS.values()
        ])  # fmt: skip
        return 0
    for each in SCENARIOS.values():
        kind = "decoy" if each.decoy else ""
        print(f"{each.name:<18} {kind:<6} {each.strength:>6,} {each.unit:<8} {each.help}")
    return 0


def _run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from nodescope.errors import UsageError
    from nodescope.lab.catalogue import find_scenario
    from nodescope.lab.run import run as run_scenario
    from nodescope.lab.truth_file import truth_path

    if args.scenario is None or args.record is None:
        raise UsageError(
            "lab run needs a scenario and --record DIR", hint="see `nodescope lab list`"
        )
    scenario = find_scenario(args.scenario)
    failures: list[str] = []
    truth = run_scenario(
        scenario, args.record, strength=args.strength, healthy=args.healthy, consent=args.yes,
        seed=args.seed, say=_say, then=partial(_fix, args, failures),
    )  # fmt: skip
    if args.json:
        options.print_json(asdict(truth))
    else:
        print(f"the recording is in {args.record}, the truth in {truth_path(args.record)}")
    for each in failures:
        _say(each)
    return 1 if failures else 0


def _fix(args: argparse.Namespace, failures: list[str], stage: ScenarioRun) -> None:
    """Fix the scenario while it still runs, if that was asked for; add what did not work."""
    from nodescope.lab.fix_run import (
        VALIDATE_S,
        describe_failures,
        fix_while_it_runs,
        plan_while_it_runs,
    )

    if args.plan and not args.fix:
        plan_while_it_runs(stage, args.record, _say)
    if args.fix:
        codes = fix_while_it_runs(stage, args.record, VALIDATE_S, _say)
        failures += describe_failures(codes)


def _synthetic(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from nodescope.errors import UsageError
    from nodescope.lab.synthetic import Shape, story_truth, write_story
    from nodescope.lab.truth_file import require_new, truth_path, write_truth

    if args.record is None:
        raise UsageError("lab synthetic needs --record DIR")
    require_new(args.record)

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\rwriting {done / total:.0%} ", end="", file=sys.stderr, flush=True)

    shape = replace(Shape(), healthy=args.healthy)
    write_story(args.record, shape, progress)
    write_truth(args.record, story_truth(shape))
    print(
        f"a synthetic recording of {shape.cores} cores and {shape.seconds // 3600} hours is in "
        f"{args.record}, the truth in {truth_path(args.record)}"
    )
    return 0


def _clean(args: argparse.Namespace) -> int:
    from nodescope.lab.ground import clean

    found = clean()
    if args.json:
        options.print_json(found)
    else:
        print("\n".join(f"took down {each}" for each in found) or "nothing was left")
    return 0


def _say(message: str) -> None:
    print(f"nodescope: {message}", file=sys.stderr, flush=True)

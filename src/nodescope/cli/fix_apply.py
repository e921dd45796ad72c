"""`nodescope fix apply`: show a plan, ask once, take its steps."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli.fix_progress import StepProgress, asks, print_error
from nodescope.errors import GuardRefused, NodescopeError, RemedyBusy, RemedyError, StalePlan

if TYPE_CHECKING:
    from nodescope.remedy.apply import ApplyRun
    from nodescope.remedy.journal import PlanJournal
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.plan import Plan

_SOMETHING_LEFT = 1


def add_subcommands(commands: options.Commands) -> None:
    """Declare `apply`."""
    parser = options.add_command(
        commands,
        "apply",
        run,
        description="Take the steps of a plan. Shows it and asks once; without a terminal it only\n"
        "shows what it would do (a dry run), unless --yes is given. Everything needed to\n"
        "go back is on disk before a step changes anything. Stops at the first step\n"
        "that is refused or fails; run again, it continues from there. Exits 0 when\n"
        "every step is done, 1 if something is left, 2 if it could not run: a plan\n"
        "that no longer fits this node is not begun.",
        examples=[
            ("nodescope fix apply plan.json", "show it, ask, do it"),
            ("nodescope fix apply plan.json --dry-run", "what it would do, and what stops it"),
            ("nodescope fix apply plan.json --yes --json", "for scripts"),
        ],
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="file made by `fix plan --json`")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument(
        "--i-know",
        action="append",
        default=[],
        metavar="NAME",
        help="take a step that the guard refuses for this unit or container; repeatable",
    )
    parser.add_argument(
        "--consent",
        action="append",
        default=[],
        metavar="OWNER",
        help="the owner that the plan names agrees that files are deleted; repeatable",
    )
    options.add_places(parser, root=True)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show, ask, apply."""
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.plan_documents import read_plan
    from nodescope.remedy.plan_words import render_plan

    plan = read_plan(args.plan)
    if not args.json:
        print(render_plan(plan, options.terminal_width()))
        print()
    node = NodeAccess(options.places(args))
    try:
        if args.dry_run or not (args.yes or sys.stdin.isatty()):
            return _show(plan, node, args)
        if not args.yes and not asks(f"Take {len(plan.steps)} steps on this node?"):
            print("nothing was changed")
            return _SOMETHING_LEFT
        return _apply(plan, node, args)
    finally:
        node.close()


def _apply(plan: Plan, node: NodeAccess, args: argparse.Namespace) -> int:
    from nodescope.remedy.journal import PlanJournal, make_fixes_folder
    from nodescope.remedy.node_lock import locked_node

    folder = make_fixes_folder(node.unit_root)
    progress = StepProgress(plan.id, len(plan.steps), plan.archive)
    with locked_node(folder):
        journal = PlanJournal.open(folder, plan.id)
        try:
            _make_run(plan, node, args, journal, progress).run()
            error: NodescopeError | None = None
        except (StalePlan, RemedyBusy):
            raise
        except RemedyError as stopped:
            error = stopped
        finally:
            journal.close()
    if args.json:
        options.print_json({**progress.document(), "error": None if error is None else str(error)})
    if error is not None:
        print_error(error)
        print("nodescope: run it again to continue, or `fix undo` to go back", file=sys.stderr)
        return _SOMETHING_LEFT
    if not args.json:
        print(f"done: every step of plan {plan.id} stands; `fix undo` takes them back")
    return 0


def _make_run(
    plan: Plan,
    node: NodeAccess,
    args: argparse.Namespace,
    journal: PlanJournal,
    progress: StepProgress,
) -> ApplyRun:
    from nodescope.remedy.apply import ApplyRun, Consents
    from nodescope.remedy.culprits import find_culprit
    from nodescope.remedy.guard.decision import guard
    from nodescope.remedy.rests_on.facts import changed_facts

    return ApplyRun(
        plan,
        node,
        journal,
        guard=guard,
        changed=lambda plan, node: tuple(changed_facts(plan.rests_on, node)),
        report=progress,
        consents=Consents(frozenset(args.i_know), frozenset(args.consent)),
        culprit=lambda step, since_ns: find_culprit(step, since_ns, node, plan.archive),
    )


def _show(plan: Plan, node: NodeAccess, args: argparse.Namespace) -> int:
    """Report what would stop the plan; change nothing, not even a folder."""
    from nodescope.remedy.apply import Consents, find_obstacles
    from nodescope.remedy.guard.decision import guard
    from nodescope.remedy.rests_on.facts import changed_facts

    consents = Consents(frozenset(args.i_know), frozenset(args.consent))
    obstacles: tuple[str, ...]
    try:
        changed = tuple(changed_facts(plan.rests_on, node))
        obstacles = (*changed, *find_obstacles(plan, node, guard, consents))
    except (NodescopeError, GuardRefused) as error:
        obstacles = (str(error),)
    if args.json:
        options.print_json({"plan": plan.id, "dry_run": True, "obstacles": list(obstacles)})
        return 0
    for each in obstacles:
        print(f"would stop it: {each}")
    if not plan.steps:
        what = "the plan has no steps to apply"
    elif obstacles:
        what = "with `--yes` it would be stopped as well"
    else:
        what = "`--yes` applies it"
    print(f"dry run: nothing was changed; {what}")
    return 0

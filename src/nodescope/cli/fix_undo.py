"""`nodescope fix undo` and `fix status`: take a plan back; show what was applied here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli.fix_progress import StepProgress, asks, print_error
from nodescope.errors import RemedyBusy, RemedyError, UsageError

if TYPE_CHECKING:
    from nodescope.records.json import Json
    from nodescope.remedy.journal import StepAttempt
    from nodescope.remedy.node_access import NodeAccess
    from nodescope.remedy.undo import Undone

_SOMETHING_LEFT = 1


def add_subcommands(commands: options.Commands) -> None:
    """Declare `undo` and `status`."""
    undo = options.add_command(
        commands,
        "undo",
        run_undo,
        description="Take back what a plan changed, the last step first: unit states, files to\n"
        "the byte, settings. What somebody else changed since is shown and left alone; what\n"
        "cannot come back is shown before. Shows and asks once; without a terminal it\n"
        "only shows, unless --yes is given. Exits 0 when everything is as before, 1 if\n"
        "something is left, 2 if it could not run.",
        examples=[
            ("nodescope fix undo plan.json", "show, ask, go back"),
            ("nodescope fix undo 3f2a9c1b7d60 --yes", "by the plan's id, from its journal"),
        ],
    )
    undo.add_argument("plan", metavar="PLAN", help="file of the plan, or its id (`fix status`)")
    undo.add_argument("--yes", action="store_true", help="do not ask")
    undo.add_argument("--dry-run", action="store_true", help="change nothing")
    options.add_places(undo, root=True)
    options.add_json(undo)
    status = options.add_command(
        commands,
        "status",
        run_status,
        description="Show the plans that were applied on this node, from their journals: steps\n"
        "done, undone and failed, when, and whether one is being applied now.",
        examples=[("nodescope fix status", "what was changed here, and what was taken back")],
    )
    options.add_places(status, root=True)
    options.add_json(status)


def run_undo(args: argparse.Namespace) -> int:
    """Show, ask, undo."""
    from nodescope.remedy.journal import SUFFIX, fixes_folder, read_journal
    from nodescope.remedy.node_access import NodeAccess

    plan, archive = _plan_of(args.plan)
    node = NodeAccess(options.places(args))
    try:
        path = fixes_folder(node.places) / f"{plan}{SUFFIX}"
        if not path.exists():
            raise UsageError(
                f"plan {plan} was not applied on this node",
                hint="`nodescope fix status` lists those that were",
            )
        standing = [each for each in reversed(read_journal(path)) if each.stands]
        if not args.json:
            _print_standing(plan, standing)
        if standing and (args.dry_run or not (args.yes or sys.stdin.isatty())):
            print("dry run: nothing was changed; `--yes` takes it back", file=sys.stderr)
            return 0
        if standing and not args.yes and not asks(f"Take back {len(standing)} steps?"):
            print("nothing was changed")
            return _SOMETHING_LEFT
        return _undo(plan, archive, node, args)
    finally:
        node.close()


def _plan_of(written: str) -> tuple[str, str | None]:
    """Return the id of a plan and the recording it names; an id alone names none."""
    from nodescope.remedy.journal import checked_id
    from nodescope.remedy.plan_documents import read_plan

    if Path(written).exists():
        plan = read_plan(Path(written))
        return plan.id, plan.archive
    try:
        return checked_id(written), None
    except RemedyError as error:
        raise UsageError(f"{written}: no such file, and not the id of a plan") from error


def _print_standing(plan: str, standing: list[StepAttempt]) -> None:
    if not standing:
        print(f"plan {plan}: nothing of it stands")
        return
    print(f"plan {plan}, the last step first:")
    for each in standing:
        back = each.step.undo if each.step.reversible else "cannot come back"
        print(f"  {each.number}. {each.step.kind} {each.step.target.name or 'the node'}: {back}")


def _undo(plan: str, archive: str | None, node: NodeAccess, args: argparse.Namespace) -> int:
    from nodescope.remedy.journal import PlanJournal, make_fixes_folder
    from nodescope.remedy.node_lock import locked_node
    from nodescope.remedy.undo import Undone, undo_journal

    folder = make_fixes_folder(node.unit_root)
    progress = StepProgress(plan, 0, archive)
    undone = Undone((), (), ())
    error: RemedyError | None = None
    with locked_node(folder):
        journal = PlanJournal.open(folder, plan)
        try:
            undone = undo_journal(journal, node, progress)
        except RemedyBusy:
            raise
        except RemedyError as stopped:
            error = stopped
        finally:
            journal.close()
    _print_undone(undone, progress, error, args)
    return _SOMETHING_LEFT if error is not None or undone.left_alone else 0


def _print_undone(
    undone: Undone, progress: StepProgress, error: RemedyError | None, args: argparse.Namespace
) -> None:
    if args.json:
        document: dict[str, Json] = {
            **progress.document(),
            "restored": list(undone.restored),
            "left_alone": list(undone.left_alone),
            "kept": list(undone.kept),
            "error": None if error is None else str(error),
        }
        options.print_json(document)
    else:
        for each in undone.left_alone:
            print(f"left alone: {each}")
        for each in undone.kept:
            print(f"cannot come back: {each}")
        if error is None and not undone.left_alone:
            print("everything that can come back is as before")
    if error is not None:
        print_error(error)
        print("nodescope: run it again to continue", file=sys.stderr)


def run_status(args: argparse.Namespace) -> int:
    """Print the journals of the node."""
    from nodescope.remedy.journal import SUFFIX, fixes_folder, list_journals, read_journal
    from nodescope.remedy.node_lock import find_working_pid

    folder = fixes_folder(options.places(args))
    pid = find_working_pid(folder)
    plans = {each.name.removesuffix(SUFFIX): read_journal(each) for each in list_journals(folder)}
    if args.json:
        plans_json: list[Json] = [_document(plan, found) for plan, found in plans.items()]
        options.print_json({"working_pid": pid, "plans": plans_json})
        return 0
    if pid is not None:
        print(f"pid {pid} works on this node now")
    if not plans:
        print("no plan was applied on this node")
    for plan, attempts in plans.items():
        print(_describe(plan, attempts))
        for each in attempts:
            print(f"  {each.number}. {each.step.kind} {each.step.target.name or 'the node'}: "
                  f"{_state_of(each)}")  # fmt: skip
    return 0


def _describe(plan: str, attempts: list[StepAttempt]) -> str:
    from nodescope.wall_time import format_moment

    if not attempts:
        return f"plan {plan}: not begun"
    done = sum(each.after is not None and each.stands for each in attempts)
    undone = sum(each.undone_ns is not None for each in attempts)
    begun = format_moment(attempts[0].begun_ns)
    return f"plan {plan}, begun {begun}: {done} steps stand, {undone} undone"


def _state_of(attempt: StepAttempt) -> str:
    from nodescope.remedy.fix_status import state_of
    from nodescope.wall_time import format_moment

    state = state_of(attempt)
    ended = attempt.undone_ns or attempt.ended_ns
    if state in ("applied", "undone") and ended is not None:
        return f"{state} {format_moment(ended)}"
    if state == "failed":
        return f"failed: {attempt.error}"
    return _STATES.get(state, state)


_STATES = {
    "under way": "cut short, or under way: `fix apply` continues, `fix undo` goes back",
    "being undone": "its undo was cut short: `fix undo` continues",
    "not undone": "cannot come back",
}


def _document(plan: str, attempts: list[StepAttempt]) -> dict[str, Json]:
    from nodescope.remedy.fix_status import state_of

    steps: list[Json] = [
        {
            "number": each.number,
            "attempt": each.attempt,
            "kind": each.step.kind,
            "target": each.step.target.name,
            "state": state_of(each),
            "begun_ns": each.begun_ns,
            "ended_ns": each.ended_ns,
            "undone_ns": each.undone_ns,
            "error": each.error,
            "left_alone": list(each.left_alone),
        }
        for each in attempts
    ]
    return {
        "plan": plan,
        "done": sum(each.after is not None and each.stands for each in attempts),
        "undone": sum(each.undone_ns is not None for each in attempts),
        "steps": steps,
    }

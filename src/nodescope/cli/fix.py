"""`nodescope fix`: plan a remedy, apply it, undo it, and prove whether it worked."""

from __future__ import annotations

import argparse

from nodescope.cli import options
from nodescope.errors import UsageError

# Each has `add_subcommands(commands)`, one or more subcommands of `fix`.
_PARTS: tuple[str, ...] = ("fix_plan", "fix_apply", "fix_undo", "fix_validate")


def add_parser(commands: options.Commands) -> None:
    """Declare the command and its subcommands."""
    import importlib

    parser = options.add_command(
        commands,
        "fix",
        run,
        description="Turn a diagnosis into a plan, show it, apply it on request, undo it to the\n"
        "byte, and prove whether it worked. Nothing is changed without `apply` or\n"
        "`undo`, and these ask before they change anything.",
        examples=[
            ("nodescope fix plan > plan.txt", "what would be done, and why"),
            ("nodescope fix plan --json > plan.json", "the same, to be applied"),
            ("nodescope fix apply plan.json", "show it, ask once, do it"),
            ("nodescope fix validate plan.json --for 10m", "did it work?"),
            ("nodescope fix undo plan.json", "as it was before"),
        ],
    )
    parts = parser.add_subparsers(metavar="SUBCOMMAND", prog="nodescope fix")
    for name in _PARTS:
        importlib.import_module(f"nodescope.cli.{name}").add_subcommands(parts)


def run(_args: argparse.Namespace) -> int:
    """Refuse to run without a subcommand."""
    raise UsageError("fix needs a subcommand", hint="see `nodescope fix --help`")

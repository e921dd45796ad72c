"""The reference of all commands, from their parsers: `python -m nodescope.cli.reference FILE`.

Written from the declarations and not from `--help`, whose layout differs from
one Python to the next. A test checks that `docs/commands.md` is current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nodescope.cli.command_list import COMMANDS
from nodescope.cli.main import build_parser

_HEAD = """\
# Commands

Made from the parsers by `make docs`; do not edit.

Exit codes: 0 healthy or done, 1 findings, 2 could not run. Data goes to
stdout, progress and logs to stderr.
"""


def render_reference() -> str:
    """The whole page."""
    parser = build_parser(list(COMMANDS))
    sections = [_HEAD]
    for name, command in _subcommands(parser).items():
        sections.append(f"## nodescope {name}\n\n{_render_command(command)}")
    return "\n".join(sections)


def _render_command(parser: argparse.ArgumentParser) -> str:
    parts = [(parser.description or "").strip(), ""]
    for name, nested in _subcommands(parser).items():
        parts += [f"### {parser.prog} {name}", "", _render_command(nested)]
    rows = [_render_option(action) for action in parser._actions if _is_shown(action)]
    if rows:
        parts += ["| option | what it does |", "|---|---|", *rows, ""]
    examples = (parser.epilog or "").removeprefix("examples:\n")
    if examples:
        parts += ["```", *(line.removeprefix("  ") for line in examples.splitlines()), "```", ""]
    return "\n".join(parts)


def _render_option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    metavar = "" if action.nargs == 0 or not action.option_strings else f" {_value(action)}"
    text = (action.help or "").replace("%%", "%").replace("|", "\\|")
    return f"| `{names}{metavar}` | {text} |"


def _value(action: argparse.Action) -> str:
    """Return the placeholder of an option's value, as `--help` writes it."""
    if action.metavar is None and action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def _is_shown(action: argparse.Action) -> bool:
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return not isinstance(action, hidden) and action.help != argparse.SUPPRESS


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_reference())

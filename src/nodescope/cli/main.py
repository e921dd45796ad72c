"""`nodescope COMMAND …`: finds the command, runs it, turns errors into messages.

Exit codes: 0 healthy or done, 1 findings, 2 could not run; 130 interrupted,
141 when the reader of our output went away. Data goes to stdout, everything
else to stderr.

A command is a module of this package with `add_parser(commands)` and
`run(args) -> int`. Only the module of the command that was asked for is
imported, and commands import what they need inside `run`, so that
`nodescope --help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import sys
import traceback
from collections.abc import Sequence

import nodescope
from nodescope.cli.command_list import COMMANDS, render_commands
from nodescope.cli.options import Commands, Parser
from nodescope.errors import NodescopeError, UsageError

COULD_NOT_RUN = 2
INTERRUPTED = 130
OUTPUT_CLOSED = 141  # 128 + SIGPIPE, as a shell would say


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()  # so that a closed pipe shows here, not while exiting
    except BrokenPipeError:
        # Python flushes stdout once more when it exits; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except NodescopeError as error:
        return _complain(str(error), error.hint)
    except Exception as error:  # noqa: BLE001 - an uncaught exception would exit 1: "findings"
        traceback.print_exc(file=sys.stderr)
        return _complain(
            f"a defect in Nodescope {nodescope.__version__}: {type(error).__name__}: {error}",
            "please report the lines above",
        )
    return code


def build_parser(wanted: Sequence[str]) -> Parser:
    """The parser, with the options of the commands in `wanted` and the names of all."""
    parser = Parser(
        prog="nodescope",
        usage="nodescope [--help] [--version] COMMAND ...",
        description=f"A flight recorder for Linux nodes.\n\n{render_commands()}",
        epilog="`nodescope COMMAND --help` shows a command's options and examples.\n"
        "Exit codes: 0 healthy or done, 1 findings, 2 could not run.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nodescope {nodescope.__version__}")
    commands: Commands = parser.add_subparsers(
        metavar="COMMAND", prog="nodescope", help=argparse.SUPPRESS
    )
    for name in COMMANDS:
        if name in wanted:
            module = f"{name}_" if keyword.iskeyword(name) else name
            importlib.import_module(f"nodescope.cli.{module}").add_parser(commands)
        else:
            commands.add_parser(name, add_help=False)
    return parser


def _run(arguments: list[str]) -> int:
    wanted = next((each for each in arguments if not each.startswith("-")), "")
    parser = build_parser([wanted])
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        command = f"nodescope {wanted}".rstrip()
        raise UsageError(
            f"unrecognized arguments: {' '.join(unknown)}", hint=f"see `{command} --help`"
        )
    if not hasattr(args, "run"):
        parser.print_help(sys.stderr)
        raise UsageError("no command given", hint="start with `nodescope doctor`")
    code: int = args.run(args)
    return code


def _complain(message: str, hint: str | None) -> int:
    print(f"nodescope: error: {message}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return COULD_NOT_RUN


if __name__ == "__main__":
    sys.exit(main())

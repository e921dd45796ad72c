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

import importlib
import keyword
import os
import sys
import traceback
from collections.abc import Sequence

import nodescope
from nodescope.cli.options import Commands, Parser
from nodescope.errors import NodescopeError, UsageError

COMMANDS = {
    "record": "keep the flight recorder running",
    "status": "what is recorded, and at what cost",
    "doctor": "which sources work here, and what allows the others",
    "freeze": "keep a time range beyond retention",
    "heatmap": "when it ran: sub-second offsets by seconds",
    "cores": "each core's time by state, second by second",
    "network": "network devices, the cores that serve them, and cores that starve",
    "flame": "which paths of functions ran: a flame graph",
    "top": "what ran most: by process, core, cgroup or function",
    "events": "what happened, each at its time",
    "mark": "put a moment on the time axis",
    "zombies": "removed memory cgroups that are still held: how many, whose, what frees them",
    "audit": "units and containers that fail, loop, hide a loop, or serve nobody",
    "diagnose": "what went wrong, and why",
    "serve": "the page: travel through a recording, look, select, compare",
    "lab": "reproduce an incident for real, and clean up",
    "import": "bring in what other tools captured",
    "compare": "what is different in a window, and how surely",
    "quality": "how far a window can be trusted: lost, unnamed, cut off, not seen",
    "export": "a window in other tools' formats, or as an incident bundle",
}
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
        description="A flight recorder for Linux nodes.",
        epilog="`nodescope COMMAND --help` shows a command's options and examples. "
        "Exit codes: 0 healthy or done, 1 findings, 2 could not run.",
    )
    parser.add_argument("--version", action="version", version=f"nodescope {nodescope.__version__}")
    commands: Commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        if name in wanted:
            module = f"{name}_" if keyword.iskeyword(name) else name
            importlib.import_module(f"nodescope.cli.{module}").add_parser(commands)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser


def _run(arguments: list[str]) -> int:
    wanted = next((each for each in arguments if not each.startswith("-")), "")
    parser = build_parser([wanted])
    args = parser.parse_args(arguments)
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

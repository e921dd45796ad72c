"""`nodescope doctor`: which sources work here, why not, and what allows them."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import textwrap
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options

if TYPE_CHECKING:
    from nodescope.sources.access import Access

_INDENT = len("degraded  ")
_UNHEALTHY = ("degraded", "denied")


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "doctor",
        run,
        description="Try every source and every observer of the node for real; show whether each\n"
        "works, is degraded, denied or absent, why, and the exact command or Kubernetes manifest\n"
        "line that allows it. `nodescope record --without NAME` leaves out an observer.\n"
        "Exits 0 when nothing is degraded or denied, else 1.",
        examples=[
            ("nodescope doctor", "as the user that will record"),
            ("nodescope doctor --json", "for scripts"),
            ("sudo -u nobody nodescope doctor", "what an unprivileged user would get"),
        ],
    )
    options.add_archive(parser, writes=True)
    parser.add_argument(
        "--ring-size",
        type=options.size,
        metavar="SIZE",
        help="memory per core that `record` would share with the kernel (default: as record)",
    )
    parser.add_argument(
        "--retention-size",
        type=options.size,
        default="4GiB",
        metavar="SIZE",
        help="most that the archive may take (default: 4GiB)",
    )
    options.add_places(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print, and say by the exit code whether all is well."""
    from nodescope.recorder.observer import Setting
    from nodescope.recorder.observer_trial import try_observers
    from nodescope.recorder.options import RecorderOptions
    from nodescope.sources.access import check_access
    from nodescope.sources.access.privileges import read_privileges
    from nodescope.sources.node.identity import read_online_cpus

    archive = options.archive_path(args)
    wanted = RecorderOptions(archive, ring_bytes=args.ring_size)
    checks = check_access(
        archive,
        ring_bytes=wanted.ring_size(len(read_online_cpus())),
        retention_bytes=args.retention_size,
    )
    checks += try_observers(Setting(options.places(args), archive), read_privileges())
    checks = [name_archive(check, options.named_archive(args)) for check in checks]
    healthy = not any(check.state in _UNHEALTHY for check in checks)
    if args.json:
        options.print_json(
            {
                "node": platform.node(),
                "uid": os.geteuid(),
                "healthy": healthy,
                "checks": [asdict(check) for check in checks],
            }
        )
    else:
        print(render_checks(checks, options.terminal_width()))
    return 0 if healthy else 1


def name_archive(check: Access, archive: Path | None) -> Access:
    """Return a check whose commands that record name the archive, unless it is the default one."""
    if archive is None:
        return check
    where = f" --archive {shlex.quote(str(archive))}"
    commands = (f"{each}{where}" if _records(each) else each for each in check.commands)
    return replace(check, commands=tuple(commands))


def _records(command: str) -> bool:
    return "nodescope record" in command and "--archive" not in command


def render_checks(checks: list[Access], width: int = 0) -> str:
    """Return a table, a count, and what to do; `width` 0 does not wrap."""
    lines = _stack(checks, width) if width else _tabulate(checks)
    counts = Counter(str(check.state) for check in checks)
    lines += ["", ", ".join(f"{count} {state}" for state, count in counts.items())]
    for (commands, manifest), sources in _group_remedies(checks).items():
        lines += ["", f"To allow {', '.join(sources)}:"]
        lines += [
            f"  {'as root' if index == 0 else 'or'}: ".ljust(14) + command
            for index, command in enumerate(commands)
        ]
        if manifest:
            lines.append("  Kubernetes: ".ljust(14) + manifest)
    if any(command.startswith("setcap") for check in checks for command in check.commands):
        lines += [
            "",
            "setcap on a Python interpreter gives these rights to every script it runs; where",
            "that is too much, run deploy/nodescope.service, which gives them to Nodescope only.",
        ]
    return "\n".join(lines)


def _tabulate(checks: list[Access]) -> list[str]:
    """Return a line for each check, for other programs."""
    what_width = max(len(check.what) for check in checks)
    return [f"{check.state:<8}  {check.what:<{what_width}}  {check.why}" for check in checks]


def _stack(checks: list[Access], width: int) -> list[str]:
    """Return each check in the width of a terminal: the reason below where it does not fit."""
    lines: list[str] = []
    room = max(width - _INDENT, 20)
    for check in checks:
        head = f"{check.state:<8}  {check.what}"
        if len(head) + 2 + len(check.why) <= width:
            lines.append(f"{head}  {check.why}")
            continue
        first, *others = textwrap.wrap(check.what, room)
        lines.append(f"{check.state:<8}  {first}")
        said = [*others, *(f"  {line}" for line in textwrap.wrap(check.why, room - 2))]
        lines += [" " * _INDENT + line for line in said]
    return lines


def _group_remedies(checks: list[Access]) -> dict[tuple[tuple[str, ...], str], list[str]]:
    """One entry per remedy, with the sources it allows: several often need the same."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for check in checks:
        if check.commands or check.manifest:
            groups.setdefault((check.commands, check.manifest), []).append(check.source)
    return groups

"""`nodescope check`: one-shot health for node-problem-detector, Nagios and scripts."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import ArchiveError, NothingRecorded, SourceError
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration

if TYPE_CHECKING:
    from nodescope.judgement.health import Health
    from nodescope.sources.places import Places

_CHECKS = {
    "zombies": "removed memory cgroups still in the kernel",
    "loops": "units and containers that loop, with or without a restart counter",
    "cores": "cores that the kernel has to itself for seconds",
    "network": "resets of network devices, and starved cores",
}
_CODES = {"ok": 0, "warning": 1, "critical": 1, "unknown": 2}
_NAGIOS = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
_LOOK_S = 0.7  # of a live look at cores


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    what = "\n".join(f"  {name:<8} {meaning}" for name, meaning in _CHECKS.items())
    parser = options.add_command(
        commands,
        "check",
        run,
        description="Answer in a second whether a node has one of these problems now:\n"
        f"{what}\n"
        "Prints one line of at most 80 bytes that starts with a fixed reason. Answers from the\n"
        "end of the recording; without one, from a look at the node, where a second is enough\n"
        "(zombies, cores). Exits 0 if all is well, 1 with a problem, 2 if that is not known:\n"
        "if the recorder stopped, or the last reading is too old or damaged.",
        examples=[
            ("nodescope check zombies", "for a node-problem-detector custom plugin"),
            ("nodescope check cores --last 5m", "pegged at any time in the last five minutes"),
            ("nodescope check network --nagios", "exit codes 0, 1, 2, 3 as Nagios has them"),
            ("nodescope check loops --json", "with the facts behind the line"),
        ],
    )
    parser.add_argument("check", choices=_CHECKS, metavar="|".join(_CHECKS), help="the problem")
    parser.add_argument(
        "--last",
        type=options.duration,
        metavar="TIME",
        help="with cores and network: look back so far (default: 1m for cores, 10m for network)",
    )
    parser.add_argument(
        "--max-age",
        type=options.duration,
        default=2 * MINUTE_NS,
        metavar="TIME",
        help="a last reading older than this is no answer (default: 2m)",
    )
    parser.add_argument(
        "--nagios",
        action="store_true",
        help="exit 1 for a warning, 2 for a critical problem, 3 if not known",
    )
    options.add_archive(parser)
    options.add_places(parser, root=True)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look, print one line, exit with its code."""
    health = _look(args)
    if args.json:
        from nodescope.wall_time import format_moment

        options.print_json(
            {
                "check": health.check,
                "status": health.status,
                "reason": health.reason,
                "message": health.message,
                "line": health.line,
                "source": "node" if health.at_ns is None else "recording",
                "at": None if health.at_ns is None else format_moment(health.at_ns),
                "facts": dict(health.facts),
            }
        )
    else:
        print(health.line)
    return (_NAGIOS if args.nagios else _CODES)[health.status]


def _look(args: argparse.Namespace) -> Health:
    """Answer from the recording, or from the node where there is none."""
    from nodescope.judgement.health import LAST_NS, judge_recording, lost_sight
    from nodescope.recording.recording import Recording

    path = options.archive_path(args)
    named = options.named_archive(args) is not None
    last_ns = args.last or LAST_NS[args.check]
    try:
        recording = Recording.open(path)
        if named or recording.parts:
            return judge_recording(args.check, recording, time.time_ns(), last_ns, args.max_age)
    except ArchiveError as error:
        if named or (path.exists() and not isinstance(error, NothingRecorded)):
            return lost_sight(args.check, "RecordingUnreadable", error.reason)
    try:
        return _live(args.check, options.places(args))
    except SourceError as error:
        return lost_sight(args.check, "NotSeen", str(error))


def _live(check: str, places: Places) -> Health:
    from nodescope.judgement.health import lost_sight

    if check == "zombies":
        return _zombies_now(places)
    if check == "cores":
        return _cores_now(places)
    if check == "loops":
        return _loops_now(places)
    return lost_sight(check, "NoRecording", "only a recording shows resets and starvation")


def _zombies_now(places: Places) -> Health:
    from nodescope.judgement.health import judge_zombies
    from nodescope.judgement.zombie_report import assess
    from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
    from nodescope.sources.memory_cgroups.survey import take_look

    return judge_zombies(assess(take_look(find_memory_hierarchy(places))))


def _cores_now(places: Places) -> Health:
    from nodescope.judgement.health import judge_cores
    from nodescope.judgement.pegged_cores import BRIEF_NS, PeggedCoreStream
    from nodescope.sources.node.proc_stat import read_cores

    stream = PeggedCoreStream()
    first_ns = time.monotonic_ns()
    for wait in (0.0, _LOOK_S):
        time.sleep(wait)
        cores = read_cores(places.proc)
        stream.read(time.monotonic_ns(), cores[:, 0], cores[:, 1:])
    runs = [run.judge(BRIEF_NS) for run in stream.end()]
    looked_ns = time.monotonic_ns() - first_ns
    over = f"the last {format_duration(looked_ns)}"
    return judge_cores([each for each in runs if each is not None], over)


def _loops_now(places: Places) -> Health:
    """Look at restart counters; a loop without one only a recording shows."""
    from nodescope.judgement.health import describe_loops, lost_sight
    from nodescope.judgement.units import audit_units
    from nodescope.sources.systemd.survey import read_survey
    from nodescope.sources.systemd.unit_processes import watch_insides

    survey = read_survey(places)
    insides = watch_insides(places, {}, SECOND_NS, lambda watched: True)
    found = [each for each in audit_units(survey, insides) if each.verdict == "looping"]
    if found:
        return describe_loops([("unit_loop", each.name) for each in found])
    return lost_sight("loops", "NoRecording", "loops without a restart counter need a recording")

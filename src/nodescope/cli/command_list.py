"""Every command and its summary, grouped by what a person wants to do."""

from __future__ import annotations

GROUPS = {
    "Record": {
        "record": "record this node until stopped",
        "mark": "add a note at a moment of the recording",
        "freeze": "keep a time range beyond retention",
    },
    "Look": {
        "serve": "browse a recording: timeline, flame graph, diagnosis",
        "cores": "time of each core by state, second by second",
        "heatmap": "samples by second and by offset within the second",
        "flame": "flame graph of any window",
        "top": "rank processes, cores, cgroups or functions by samples",
        "events": "list events: resets, kills, restarts, pegged cores",
        "network": "network devices, the cores serving their queues, and starved cores",
    },
    "Explain": {
        "diagnose": "find what went wrong and why, with evidence",
        "compare": "find what differs from the time before, and how surely",
        "zombies": "count removed memory cgroups still in the kernel, find the source",
        "audit": "find units and containers that fail, crash-loop or serve nobody",
        "check": "one-shot health for node-problem-detector, Nagios and scripts",
    },
    "Fix": {
        "fix": "plan a remedy, apply it, undo it to the byte, prove it",
        "experiment": "compare a mitigation across nodes, and say when to stop",
    },
    "Exchange": {
        "import": "import captures and logs of other tools",
        "export": "export a window to other tools' formats, or as one bundle file",
    },
    "Maintain": {
        "status": "show what is recorded, and what recording costs",
        "doctor": "check which sources work here, and what allows the others",
        "quality": "show what a window lacks: lost, unnamed, truncated, unobserved",
        "lab": "make a real incident on a test machine, and clean up",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


def render_commands() -> str:
    """Return the commands by group, one to a line, as `nodescope --help` prints them."""
    width = max(map(len, COMMANDS))
    lines = []
    for title, commands in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name:<{width}}  {summary}" for name, summary in commands.items()]
    return "\n".join(lines)

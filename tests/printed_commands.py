"""Finds the commands that a report, an answer or an error tells people to run.

A command stands on a line after `$`, in backticks, in `<code>`, as a field of JSON, or ends
its line. Everything from `nodescope` on is taken: what is not a command must not look like one.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from nodescope.cli.command_list import COMMANDS

_PROMPT = re.compile(r"\$ (.+)$", re.MULTILINE)
_TICKS = re.compile(r"(?<![`\\])(`{1,2})(?!`)\s?(.+?)\s?(?<![`\\])\1(?!`)", re.DOTALL)
_CODE = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_BARE = re.compile(rf"(?<![`\w/.])(nodescope (?:{'|'.join(COMMANDS)})(?: .+)?)$", re.MULTILINE)
# The first words of commands of the system that reports propose.
SYSTEM = {"systemctl", "docker", "podman", "echo", "sysctl", "bpftool", "slabtop", "swapoff", "du"}
_FIELDS = ("show", "command", "check", "hint")


def in_text(text: str) -> list[str]:
    """Return the commands of a text for a terminal, or of an error."""
    found = _PROMPT.findall(text)
    rest = _PROMPT.sub("", text)
    ticked = [" ".join(command.split()) for _, command in _TICKS.findall(rest)]
    rest = _TICKS.sub("", rest)
    rest = re.sub(r"^nodescope: .*$", "", rest, flags=re.MULTILINE)  # what a message begins with
    return [*found, *(each for each in ticked if _is_command(each)), *_BARE.findall(rest)]


def _is_command(text: str) -> bool:
    """Decide whether a text in backticks is a command; names and log lines stand in them, too."""
    program, _, rest = text.partition(" ")
    return bool(rest) and (program == "nodescope" or program in SYSTEM)


def in_markdown(text: str) -> list[str]:
    """Return the commands of a report in Markdown: its code."""
    found = (command.replace("\\|", "|") for _, command in _TICKS.findall(text))
    return [command for command in found if _is_command(command)]


def in_html(page: str) -> list[str]:
    """Return the commands of a page: its code."""
    found = (html.unescape(command) for command in _CODE.findall(page))
    return [command for command in found if _is_command(command)]


def in_json(document: object) -> Iterator[str]:
    """Yield the commands of an answer for scripts; a hint may have words before it."""
    if isinstance(document, str):
        document = json.loads(document)
    if isinstance(document, list):
        for each in document:
            yield from in_json(each) if isinstance(each, dict | list) else ()
    elif isinstance(document, dict):
        for name, value in document.items():
            listed = value if isinstance(value, list) else [value]
            texts = [each for each in listed if isinstance(each, str)]
            if name == "hint":
                yield from (each for text in texts for each in in_text(text))
            elif name in _FIELDS:
                yield from filter(None, texts)
            if isinstance(value, dict | list):
                yield from in_json(value)

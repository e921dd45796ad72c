"""A route and its parameters, declared once: the declaration checks requests and documents them.

A parameter has the JSON schema that the OpenAPI document shows; what breaks it, and
what its own `parse` refuses, is answered with 400 and says which parameter it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.errors import UsageError
from nodescope.records.json import Json
from nodescope.web.question import Question, Reply, Values
from nodescope.web.schemas import Schema


@dataclass(frozen=True)
class Parameter:
    """One of a request's parameters."""

    name: str
    help: str
    schema: Schema
    parse: Callable[[str], Any]
    default: Any = None
    required: bool = False

    def read(self, text: str) -> Any:
        """The value; says which parameter it was if it makes no sense."""
        try:
            return self.parse(text)
        except UsageError as error:
            raise UsageError(f"{self.name}: {error}", hint=error.hint) from error


@dataclass(frozen=True)
class AnswerKind:
    """The form of an answer: a media type, and for JSON its schema."""

    media_type: str
    schema: Schema = field(default_factory=lambda: {"type": "string", "format": "binary"})


@dataclass(frozen=True)
class Route:
    """One path of the API."""

    path: str
    summary: str
    answer: Callable[[Question], Reply]
    kinds: Sequence[AnswerKind]
    parameters: Sequence[Parameter] = ()
    slow: bool = False  # may take seconds: waits in a queue of its own
    by_samples: bool = False  # reads samples, so a long window makes it slow
    cached: bool = True

    def read(self, pairs: Sequence[tuple[str, str]]) -> Values:
        """The values of a request's parameters."""
        known = {each.name: each for each in self.parameters}
        values = {each.name: each.default for each in self.parameters}
        seen: set[str] = set()
        for name, text in pairs:
            if name not in known:
                raise UsageError(
                    f"no parameter {name!r:.80} here",
                    hint=f"there are {', '.join(known) or 'none'}",
                )
            if name in seen:
                raise UsageError(f"{name}: given twice", hint="give it once")
            seen.add(name)
            values[name] = known[name].read(text)
        missing = [each.name for each in self.parameters if each.required and each.name not in seen]
        if missing:
            raise UsageError(f"{missing[0]}: is missing", hint=known[missing[0]].help)
        return values


# -- kinds of parameters ---------------------------------------------------------


def integer(name: str, help_: str, least: int, most: int, default: int | None = None) -> Parameter:
    """A whole number between two others."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,19}", text) or not least <= int(text) <= most:
            raise UsageError(
                f"not a whole number from {least} to {most}: {text!r:.80}",
                hint="write it like 100" if default is None else f"the default is {default}",
            )
        return int(text)

    schema: dict[str, Json] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name, help_, schema, parse, default)


def choice(name: str, help_: str, values: Sequence[str], default: str | None = None) -> Parameter:
    """One of some words."""

    def parse(text: str) -> str:
        if text not in values:
            raise UsageError(f"not one of them: {text!r:.80}", hint=", ".join(values))
        return text

    schema: dict[str, Json] = {"type": "string", "enum": list(values)}
    if default is not None:
        schema["default"] = default
    return Parameter(name, help_, schema, parse, default)


def flag(name: str, help_: str) -> Parameter:
    """0 or 1."""
    declared = choice(name, help_, ("0", "1"), "0")
    return Parameter(name, help_, declared.schema, lambda text: declared.parse(text) == "1", False)


def text(
    name: str,
    help_: str,
    longest: int,
    parse: Callable[[str], Any] = lambda text: text,
    *,
    required: bool = False,
) -> Parameter:
    """Some text, of a bounded length."""

    def read(given: str) -> Any:
        if not 1 <= len(given) <= longest:
            raise UsageError(
                f"{len(given)} characters", hint=f"give at least one and at most {longest}"
            )
        return parse(given)

    schema: dict[str, Json] = {"type": "string", "minLength": 1, "maxLength": longest}
    return Parameter(name, help_, schema, read, required=required)


def number(
    name: str, help_: str, parse: Callable[[str], Any], least: float, most: float
) -> Parameter:
    """A number with a fraction."""
    schema: dict[str, Json] = {"type": "number", "minimum": least, "maximum": most}
    return Parameter(name, help_, schema, parse)

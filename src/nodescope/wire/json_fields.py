"""Fields of JSON from daemons and their files, read without trusting it.

A field of the wrong type is missing, not an error: versions differ. Only a text
that is not JSON, or not an object where there must be one, is malformed.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from nodescope.errors import MalformedSource, source_error
from nodescope.records.json import JsonObject
from nodescope.wall_time import match_iso

MAX_TEXT = 1024
_MAX_INTEGER = (1 << 63) - 1
_NOTHING: JsonObject = {}


def parse_json(content: bytes, path: str | Path) -> Any:
    """Decode JSON; whatever is wrong with it is a `MalformedSource`."""
    try:
        return json.loads(content)
    except RecursionError:
        raise MalformedSource(path, "nested too deeply") from None
    except ValueError as error:
        raise MalformedSource(path, f"not JSON: {str(error)[:120]}") from None


def parse_object(content: bytes, path: str | Path) -> JsonObject:
    """Decode a JSON object."""
    decoded = parse_json(content, path)
    if not isinstance(decoded, dict):
        raise MalformedSource(path, f"an object was expected, not {type(decoded).__name__}")
    return decoded


def read_bounded(path: Path, limit: int) -> bytes:
    """Return a file's content; one larger than `limit`, or a FIFO or device, is malformed."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise MalformedSource(path, "no ordinary file")
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise source_error(path, error) from error
    if len(content) > limit:
        raise MalformedSource(path, f"larger than {limit} bytes")
    return content


def inner(fields: JsonObject, name: str) -> JsonObject:
    """An object within an object; empty if there is none."""
    value = fields.get(name)
    return value if isinstance(value, dict) else _NOTHING


def text(fields: JsonObject, name: str) -> str | None:
    """A text that says something."""
    value = fields.get(name)
    return value[:MAX_TEXT] if isinstance(value, str) and value else None


def whole(fields: JsonObject, name: str) -> int | None:
    """A whole number that the archive can hold."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_INTEGER:
        return None
    return value


def number_of(value: str | None) -> int | None:
    """A whole number written as text, as labels and attributes have them."""
    if value is None or len(value) > 18 or not value.lstrip("-").isdecimal():
        return None
    try:
        return int(value)
    except ValueError:
        return None


def process(fields: JsonObject, name: str) -> int | None:
    """A process id; None where there is none, which is written as 0."""
    value = whole(fields, name)
    return value if value is not None and 0 < value < 1 << 31 else None


def time_of(value: str | None) -> int | None:
    """Return RFC 3339 as nanoseconds since the epoch; Go's zero time (year 1) is None."""
    if value is None or value[:4] <= "1970":
        return None
    found = match_iso(value)
    if found is None:
        return None
    time_ns, has_zone, end = found
    return time_ns if has_zone and end == len(value) else None

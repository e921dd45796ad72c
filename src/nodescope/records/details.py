"""Details: the typed part of an event, as its kind declares it.

A class of details is a `Declared` record whose fields are annotated with their meaning
(`Annotated[int | None, detail("…")]`); None means not known. The archive stores details as
a JSON object without what is None. Reading one back takes nothing on trust, because an
archive may be hostile, or written by another version: a field is None unless its value has
the declared type, and whatever was not understood is kept aside in `others`, so that people
still see it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from nodescope.records.declared import Declared, Field
from nodescope.records.json import Json, JsonObject


class _DetailNote(NamedTuple):
    """The description that an annotation adds to the type of a field."""

    help: str
    key: str | None
    formerly: str | None


def detail(
    help: str,  # noqa: A002 (the help of a column is called so, too)
    *,
    key: str | None = None,
    formerly: str | None = None,
) -> _DetailNote:
    """Declare what a field means.

    `key` is its name in JSON where that cannot be the name of an attribute, and `formerly`
    the name that older archives have for it.
    """
    return _DetailNote(help, key, formerly)


class DetailField(NamedTuple):
    """One declared field of a class of details."""

    attribute: str
    key: str
    help: str
    formerly: str | None
    type: str  # for people: `whole number`, `text`, …
    parse: Callable[[Json], object]  # None if the value is not of that type


_NO_OTHERS: JsonObject = {}


class Details(Declared):
    """Further facts of an event; by itself, of one whose kind declares none."""

    others: JsonObject = _NO_OTHERS

    def to_json(self) -> dict[str, Json]:
        """Return what is known, as a JSON object."""
        found = ((each.key, getattr(self, each.attribute)) for each in fields_of(type(self)))
        known = {key: _plain(value) for key, value in found if value is not None}
        return {**known, **self.others}

    def __bool__(self) -> bool:
        """Return whether anything is known."""
        return bool(self.to_json())


NOTHING = Details()

DeclaredDetails = TypeVar("DeclaredDetails", bound=Details)


def format_details(details: Details) -> str | None:
    """Return details as the archive stores them; None if nothing is known."""
    document = details.to_json() if details is not NOTHING else None
    return json.dumps(document, ensure_ascii=False) if document else None


def parse_details(declared: type[DeclaredDetails], text: str | None) -> DeclaredDetails:
    """Return what the archive stores as details of a class; empty ones if it makes no sense."""
    if not text:
        return declared()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return declared()
    if not isinstance(document, dict):
        return declared()
    return read_details(declared, document)


def read_details(declared: type[DeclaredDetails], document: JsonObject) -> DeclaredDetails:
    """Return a JSON object as details of a class."""
    make: Callable[..., DeclaredDetails] = declared
    fields = _fields_by_name(declared)
    found: dict[str, object] = {}
    others: dict[str, Json] = {}
    for name, value in document.items():
        if value is None:
            continue
        known = fields.get(name)
        superseded = known is not None and name != known.key and known.key in document
        parsed = None if known is None or superseded else known.parse(value)
        if known is None or parsed is None:
            others[name] = value
        else:
            found[known.attribute] = parsed
    return make(**found, others=others or _NO_OTHERS)


def _fields_by_name(declared: type[Details]) -> Mapping[str, DetailField]:
    """Return the fields of a class by their names, and by those they formerly had."""
    if declared not in _BY_NAME:
        fields = fields_of(declared)
        former = {each.formerly: each for each in fields if each.formerly}
        _BY_NAME[declared] = {**former, **{each.key: each for each in fields}}
    return _BY_NAME[declared]


_BY_NAME: dict[type[Details], Mapping[str, DetailField]] = {}


def fields_of(declared: type[Details]) -> tuple[DetailField, ...]:
    """Return the fields that a class of details declares, those of its bases first."""
    if declared not in _FIELDS:
        fields = (each for each in declared.fields() if each.name != "others")
        _FIELDS[declared] = tuple(_detail_field(each) for each in fields)
    return _FIELDS[declared]


_FIELDS: dict[type[Details], tuple[DetailField, ...]] = {}  # classes are declared once


def _detail_field(declared: Field) -> DetailField:
    note: _DetailNote = declared.note
    name, parse = _TYPES[declared.type]
    return DetailField(
        declared.name, note.key or declared.name, note.help, note.formerly, name, parse
    )


def _plain(value: object) -> Json:
    """Return the value of a field as `json` reads it back."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    assert isinstance(value, bool | int | float | str)
    return value


# -- the types a field may have ------------------------------------------------------


def _parse_whole(value: Json) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) < 1 << 63 else None


def _parse_number(value: Json) -> float | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _parse_whole(value)


def _parse_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _parse_flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _parse_wholes(value: Json) -> tuple[int, ...] | None:
    found = [_parse_whole(each) for each in value] if isinstance(value, list | tuple) else [None]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _parse_texts(value: Json) -> tuple[str, ...] | None:
    found = [_parse_text(each) for each in value] if isinstance(value, list | tuple) else [None]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _parse_counts(value: Json) -> dict[str, int] | None:
    if not isinstance(value, Mapping):
        return None
    found = {key: count for key, each in value.items() if (count := _parse_whole(each)) is not None}
    return found if len(found) == len(value) else None


_TYPES: dict[object, tuple[str, Callable[[Json], object]]] = {
    int: ("whole number", _parse_whole),
    float: ("number", _parse_number),
    str: ("text", _parse_text),
    bool: ("true or false", _parse_flag),
    tuple[int, ...]: ("list of whole numbers", _parse_wholes),
    tuple[str, ...]: ("list of texts", _parse_texts),
    Mapping[str, int]: ("whole numbers by text", _parse_counts),
}

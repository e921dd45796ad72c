"""Immutable typed records whose fields carry what they mean, declared once as a class.

A subclass of `Declared` reads like a frozen, keyword-only dataclass, and is one to type
checkers. It is not made by `dataclasses`, which compiles each class anew at import: the
fifty declarations of this package would be 40 ms of every command, a third of a flame
graph. Annotations stay text until somebody asks for `fields`: modules of declarations begin
with `from __future__ import annotations`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

_MISSING: Any = object()


class Field(NamedTuple):
    """One field: its Python type without `None`, and what its annotation adds to that."""

    name: str
    type: type
    nullable: bool
    note: Any


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Declaring(type):
    """Makes slots of annotations, and defaults of the values given with them."""

    _defaults: Mapping[str, object]

    def __new__(
        cls, name: str, bases: tuple[type, ...], content: dict[str, Any], **options: object
    ) -> Any:
        own = [each for each in content.get("__annotations__", {}) if not each.startswith("_")]
        defaults = {each: content.pop(each, _MISSING) for each in own}
        made = super().__new__(cls, name, bases, {**content, "__slots__": tuple(own)}, **options)
        above: Mapping[str, object] = getattr(made, "_defaults", {})
        made._defaults = {**above, **defaults}
        return made


class Declared(metaclass=_Declaring):
    """Base of all declared records."""

    _defaults: ClassVar[Mapping[str, object]] = {}  # by field; _MISSING: it must be given

    def __init__(self, **values: Any) -> None:
        if values.keys() != self._defaults.keys():
            values = {**self._defaults, **values}
            wrong = [name for name in values if name not in self._defaults]
            wrong += [name for name, value in values.items() if value is _MISSING]
            if wrong:
                raise TypeError(f"{type(self).__name__}: {', '.join(wrong)} unknown or missing")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields, in the order they are declared."""
        return tuple(cls._defaults)

    @classmethod
    def fields(cls) -> list[Field]:
        """Return the declared fields with their types and notes."""
        annotations: dict[str, object] = {}
        for each in reversed(cls.__mro__):
            annotations |= inspect.get_annotations(each, eval_str=True)
        return [_field(name, annotations[name]) for name in cls._defaults]

    def as_dict(self) -> dict[str, object]:
        """Return the values by field."""
        return {name: getattr(self, name) for name in self._defaults}

    def replace(self, **changes: Any) -> Self:
        """Return the same record with other values in some fields."""
        return type(self)(**{**self.as_dict(), **changes})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    __delattr__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.as_dict())

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._defaults])


def compile_init(kind: type[Declared]) -> Callable[..., None]:
    """Compile an `__init__` for a class of many records: three times as fast as the general one.

    It takes a fifth of a millisecond: worth it from the second hundred of records on.
    """
    # Names are those of declared fields, so identifiers; slots are set past `__setattr__`.
    scope: dict[str, object] = {}
    parameters, body = [], []
    for name, default in kind._defaults.items():
        scope[f"_set_{name}"] = getattr(kind, name).__set__
        scope[f"_default_{name}"] = default
        parameters.append(name if default is _MISSING else f"{name}=_default_{name}")
        body.append(f"    _set_{name}(self, {name})")
    lines = [f"def __init__(self, *, {', '.join(parameters)}):", *body]
    exec("\n".join(lines), scope)  # noqa: S102 (made of declared names only)
    compiled: Any = scope["__init__"]
    return compiled  # type: ignore[no-any-return]


def _restore(kind: type[Declared], values: Mapping[str, object]) -> Declared:
    return kind(**values)


def _field(name: str, annotation: Any) -> Field:
    """Return what an annotation `T`, `T | None` or `Annotated[…, note]` says."""
    note = None
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, note = typing.get_args(annotation)
    options = (
        typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    )
    (plain,) = (option for option in options if option is not types.NoneType)
    return Field(name, plain, types.NoneType in options, note)

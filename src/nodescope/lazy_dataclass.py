"""`dataclass` with the standard library's meaning, for a fraction of its time at import.

`dataclasses.dataclass` writes and compiles up to nine methods of each class while its module
is imported: half a millisecond, for each of the hundred classes that a diagnosis loads, most of
which it makes no instance of. Here a class compiles its `__init__` when its first instance is
made, and its other methods are ordinary functions.

Supported is what this code uses: `frozen`, `slots`, `kw_only`, `eq`, `field`, `__post_init__`,
inheritance from classes declared here, and `fields`, `replace` and `asdict` of the standard
library. Type checkers see the standard decorator. Annotations must be text: modules begin with
`from __future__ import annotations`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        kw_only: bool = False,
    ) -> Any:
        """Return the class with its methods; without a class, the decorator of one."""

        def declare(plain: type) -> type:
            return _declare(plain, frozen, slots, eq, kw_only)

        return declare if cls is None else declare(cls)


__all__ = ["dataclass"]

_FIELDS = "__nodescope_fields__"  # by name, those of the bases first
_MISSING = dataclasses.MISSING
_Fields = dict[str, "dataclasses.Field[Any]"]


def _declare(cls: type, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    own = _own_fields(cls, kw_only)
    every: _Fields = {}
    for base in reversed(cls.__mro__[1:]):
        every |= base.__dict__.get(_FIELDS, {})
    slotted = tuple(name for name in own if name not in every)
    every |= own
    content = dict(cls.__dict__)
    for name, each in own.items():
        content.pop(name, None)
        if not slots and each.default is not _MISSING:
            content[name] = each.default
    shown = [name for name, each in every.items() if each.repr]
    content[_FIELDS] = every
    content["__dataclass_fields__"] = _StandardFields()
    content["__match_args__"] = tuple(
        name for name, each in every.items() if each.init and not each.kw_only
    )
    content.setdefault("__repr__", _make_repr(shown))
    if eq:
        _add_comparison(content, [name for name, each in every.items() if each.compare], frozen)
    if frozen:
        content |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if slots:
        content["__slots__"] = slotted
        if frozen:
            content |= {"__getstate__": _values_of, "__setstate__": _restore}
    for name in ("__dict__", "__weakref__"):  # of the class as it was, which had no slots
        content.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    if "__init__" not in content:
        made.__init__ = _make_lazy_init(made, frozen)  # type: ignore[misc]
    return made


def _own_fields(cls: type, kw_only: bool) -> _Fields:
    """Return the fields that the class itself annotates, as the standard library has them."""
    found: _Fields = {}
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation.startswith("ClassVar"):
            continue
        given = cls.__dict__.get(name, _MISSING)
        each = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        each.name, each.type = name, annotation
        if each.kw_only is _MISSING:
            each.kw_only = kw_only
        found[name] = each
    return found


# -- the first instance ----------------------------------------------------------


def _make_lazy_init(cls: Any, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that compiles the true one, puts it in its place and calls it."""

    def __init__(self: object, *args: object, **values: object) -> None:  # noqa: N807
        cls.__init__ = compiled = _compile_init(cls, frozen)
        compiled(self, *args, **values)

    return __init__


def _compile_init(cls: Any, frozen: bool) -> Callable[..., None]:
    # Names are those of annotated fields, so identifiers.
    scope: dict[str, Any] = {"_MISSING": _MISSING, "_set": object.__setattr__}
    positional: list[str] = ["self"]
    named: list[str] = ["*"]
    body: list[str] = []
    for name, each in getattr(cls, _FIELDS).items():
        scope |= {f"_default_{name}": each.default, f"_make_{name}": each.default_factory}
        default, value = _default_and_value(name, each)
        if each.init:
            (named if each.kw_only else positional).append(name + default)
        slot = getattr(cls, name, None)
        if value is None:
            continue
        if not frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot, types.MemberDescriptorType):  # past `__setattr__`, which refuses
            scope[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(positional + named * (len(named) > 1))
    exec("\n ".join([f"def __init__({parameters}):", *body, "pass"]), scope)  # noqa: S102 (see above)
    compiled: Callable[..., None] = scope["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


def _default_and_value(name: str, each: dataclasses.Field[Any]) -> tuple[str, str | None]:
    """Return the parameter's default as code, and the field's value; None if it gets none."""
    if each.default_factory is not _MISSING:
        made = f"_make_{name}()"
        return "=_MISSING", f"{made} if {name} is _MISSING else {name}" if each.init else made
    if each.default is not _MISSING:
        return f"=_default_{name}", name if each.init else f"_default_{name}"
    return "", name if each.init else None


# -- the other methods -----------------------------------------------------------


def _add_comparison(content: dict[str, Any], names: list[str], frozen: bool) -> None:
    values: Callable[[object], object] = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    hashed = content.get("__hash__") is not None  # None: the class has an `__eq__` of its own
    content.setdefault("__eq__", __eq__)
    if not hashed:
        content["__hash__"] = __hash__ if frozen else None


def _make_repr(names: Iterable[str]) -> Callable[[object], str]:
    def __repr__(self: object) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _refuse_to_set(_: object, name: str, __: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _values_of(self: object) -> list[object]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _restore(self: object, values: list[object]) -> None:
    for name, value in zip(getattr(self, _FIELDS), values, strict=True):
        object.__setattr__(self, name, value)


class _StandardFields:
    """What `fields`, `replace` and `asdict` look for, made when one of them does."""

    def __get__(self, instance: object, owner: type) -> _Fields:
        listed = [(name, each.type, each) for name, each in getattr(owner, _FIELDS).items()]
        twin: Any = dataclasses.make_dataclass(owner.__name__, listed)
        found: _Fields = twin.__dataclass_fields__
        type.__setattr__(owner, "__dataclass_fields__", found)
        return found

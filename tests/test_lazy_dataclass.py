"""`nodescope.lazy_dataclass` does what `dataclasses.dataclass` does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from nodescope import lazy_dataclass
from nodescope.records.event import Event

DECORATORS: list[Any] = [dataclasses.dataclass, lazy_dataclass.dataclass]


@pytest.fixture(params=DECORATORS, ids=["standard", "lazy"])
def decorate(request: pytest.FixtureRequest) -> Callable[..., Any]:
    decorator: Callable[..., Any] = request.param
    return decorator


@pytest.fixture
def point(decorate: Callable[..., Any]) -> Any:
    @decorate(frozen=True, slots=True)
    class Point:
        """A place."""

        LARGEST: ClassVar[int] = 9
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, compare=False)

    return Point


def test_an_instance_has_what_was_given_and_its_defaults(point: Any) -> None:
    made = point(1)
    assert (made.x, made.y, made.names, made.LARGEST) == (1, 2, [], 9)
    assert point(1, names=["a"], y=5).names == ["a"]
    assert point(1).names is not point(1).names
    assert repr(made).endswith("Point(x=1, y=2, names=[])")


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, [], 4), {}, "takes from 2 to 4 positional arguments but 5 were given"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    point: Any, args: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    for _ in range(2):  # the first instance and any other
        with pytest.raises(TypeError, match=said):
            point(*args, **named)


def test_frozen_slots_cannot_be_changed_or_added_to(point: Any) -> None:
    made = point(1)
    for name in ("x", "w"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(made, name, 3)
    with pytest.raises(AttributeError):
        del made.x
    assert not hasattr(made, "__dict__")


def test_equality_and_hash_go_by_the_compared_fields(point: Any) -> None:
    assert point(1, 2, ["a"]) == point(1, 2, ["b"]) != point(1, 3)
    assert len({point(1, 2, ["a"]), point(1, 2), point(2, 2)}) == 2
    assert point(1) != (1, 2)


def test_fields_replace_asdict_and_match(point: Any) -> None:
    made = point(1, names=["a"])
    assert [each.name for each in fields(made)] == ["x", "y", "names"]
    assert replace(made, y=7) == point(1, 7)
    assert asdict(made) == {"x": 1, "y": 2, "names": ["a"]}
    assert point.__match_args__ == ("x", "y", "names")
    assert dataclasses.is_dataclass(point)


def test_an_unfrozen_class_can_be_changed_and_has_no_hash(decorate: Callable[..., Any]) -> None:
    class Plain:
        x: int = 1

    Open: Any = decorate(slots=True)(Plain)  # noqa: N806
    made = Open()
    made.x = 4
    assert made == Open(4)
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_without_eq_instances_are_themselves_alone(decorate: Callable[..., Any]) -> None:
    class Plain:
        x: int = 1

    Own: Any = decorate(eq=False)(Plain)  # noqa: N806
    assert Own() != Own()
    assert len({Own(), Own()}) == 2


def test_methods_of_the_class_itself_stay(decorate: Callable[..., Any]) -> None:
    class Plain:
        x: int
        double: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", self.x * 2)

        def __repr__(self) -> str:
            return "shown"

        def __hash__(self) -> int:
            return 5

    Shown: Any = decorate(frozen=True)(Plain)  # noqa: N806
    assert (Shown(2).double, repr(Shown(2)), hash(Shown(2))) == (4, "shown", 5)


class _Base:
    x: int
    y: int = 0


def _subclass(base: type, name: str, **fields: tuple[object, ...]) -> type:
    annotations = {each: declared[0] for each, declared in fields.items()}
    defaults = {each: declared[1] for each, declared in fields.items() if declared[1:]}
    return type(name, (base,), {"__annotations__": annotations, **defaults})


def test_a_subclass_has_the_fields_of_its_base_first(decorate: Callable[..., Any]) -> None:
    base = decorate(frozen=True, slots=True)(_Base)
    below = decorate(frozen=True, slots=True)(_subclass(base, "Below", z=("int", 3)))
    named = decorate(frozen=True, slots=True, kw_only=True)(_subclass(base, "Named", must=("int",)))

    assert base(1) == base(1, 0)
    assert repr(below(1)).endswith("Below(x=1, y=0, z=3)")
    assert (below(1, 2, 4).z, replace(below(1), z=5).z) == (4, 5)
    assert base(1) != below(1)
    assert named(1, must=2).must == 2
    with pytest.raises(TypeError):
        named(1, 2, 3)


def test_an_instance_survives_pickle_and_copy() -> None:
    event = Event(5, "oom_kill", "node", "killed", cpu=3)
    assert pickle.loads(pickle.dumps(event)) == event
    assert copy.deepcopy(event) == event

"""The house: each name names one thing, and each small decision has one home."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/nodescope"
TIMES = {10**9: "SECOND_NS", 60 * 10**9: "MINUTE_NS", 3600 * 10**9: "HOUR_NS"}
CALENDAR = {"strftime", "strptime", "fromisoformat"}
# What is no time for people: the name of a segment, and what `perf script` prints.
OWN_CALENDAR = {"wall_time.py", "archive/layout.py", "exchange/perf_script/text.py"}


@cache
def parsed() -> dict[str, ast.Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    assert len(paths) > 300
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_bytes()) for path in paths}


def module_names() -> Iterator[tuple[str, str]]:
    """Yield the package and the name of each module and package."""
    for path in map(Path, parsed()):
        where = path.parent if path.stem == "__init__" else path
        if where != Path():
            yield str(where.parent), where.stem


def stems(name: str) -> set[str]:
    """Return the words a gerund may be made of: seal(ing), writ(ing): write, bundl(ing): bundle."""
    base = name.removesuffix("ing")
    if base == name or len(base) < 2:
        return set()
    doubled = base[-1] == base[-2]
    return {base, f"{base}e"} | ({base[:-1]} if doubled else set())


def test_no_class_name_is_defined_twice() -> None:
    where = defaultdict(list)
    for path, module in parsed().items():
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(path)
    twice = {name: paths for name, paths in where.items() if len(paths) > 1}
    assert twice == {}


def test_no_module_is_a_gerund_of_another() -> None:
    # A command is called by its verb: `cli/record.py` beside the package `recording`.
    known = {name for package, name in module_names() if not package.startswith("cli")}
    twins = {name: stems(name) & known for name in known if stems(name) & known}
    assert twins == {}


def test_no_two_modules_of_a_package_differ_by_a_gerund() -> None:
    packages = defaultdict(set)
    for package, name in module_names():
        packages[package].add(name)
    twins = {
        (package, name): stems(name) & names
        for package, names in packages.items()
        for name in names
        if stems(name) & names
    }
    assert twins == {}


@pytest.mark.parametrize(
    ("gerund", "twin"), [("sealing", "seal"), ("bundling", "bundle"), ("running", "run")]
)
def test_gerunds_are_recognised(gerund: str, twin: str) -> None:
    assert twin in stems(gerund)
    assert not stems("ring") & {"r"}


def test_units_of_time_are_defined_once() -> None:
    found = [
        f"{path}:{node.lineno}: {TIMES[node.value]}"
        for path, module in parsed().items()
        if path != "quantities.py"
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in TIMES
    ]
    assert found == []


def test_wall_times_are_printed_and_read_in_one_place() -> None:
    found = [
        f"{path}:{node.lineno}: {node.attr}"
        for path, module in parsed().items()
        if path not in OWN_CALENDAR
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr in CALENDAR
    ]
    assert found == []


def test_types_of_arrays_are_defined_once() -> None:
    homes = defaultdict(list)
    for path, module in parsed().items():
        for node in module.body:
            if isinstance(node, ast.Assign) and "NDArray[np." in ast.unparse(node.value):
                homes[ast.unparse(node.value).removeprefix("npt.")].append(path)
    assert {kind: paths for kind, paths in homes.items() if len(paths) > 1} == {}

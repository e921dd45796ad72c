"""Readers of exported files, written against the formats and not against our writers."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

Stack = tuple[str, ...]


def read_folded(path: Path) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for line in path.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(number)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def _message(data: bytes) -> dict[int, list[Any]]:
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value: Any
            value, at = _varint(data, at)
        else:
            assert key & 7 == 2
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _packed(pieces: list[bytes]) -> list[int]:
    found = []
    for piece in pieces:
        at = 0
        while at < len(piece):
            value, at = _varint(piece, at)
            found.append(value)
    return found


def read_pprof(path: Path) -> list[dict[str, Any]]:
    """Samples of profile.proto: stack (outermost first), values, labels."""
    profile = _message(gzip.decompress(path.read_bytes()))
    strings = [text.decode() for text in profile[6]]
    assert strings[0] == ""
    functions = {(f := _message(data))[1][0]: strings[f[2][0]] for data in profile.get(5, [])}
    mappings = {_message(data)[1][0] for data in profile.get(3, [])}
    locations = {}
    for data in profile.get(4, []):
        location = _message(data)
        assert location[2][0] in mappings
        locations[location[1][0]] = functions[_message(location[4][0])[1][0]]
    samples = []
    for data in profile.get(2, []):
        sample = _message(data)
        labels: dict[str, Any] = {}
        for text in sample.get(3, []):
            of = _message(text)
            name = strings[of[1][0]]
            labels[name] = strings[of[2][0]] if 2 in of else of.get(3, [0])[0]
        stack = tuple(locations[number] for number in reversed(_packed(sample[1])))
        samples.append({"stack": stack, "values": _packed(sample[2]), **labels})
    return samples


def read_speedscope(document: dict[str, Any]) -> dict[str, Counter[Stack]]:
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found: dict[str, Counter[Stack]] = {}
    for profile in document["profiles"]:
        assert profile["type"] == "sampled"
        own = found.setdefault(profile["name"], Counter())
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            own[tuple(names[frame] for frame in stack)] += weight
        assert profile["endValue"] - profile["startValue"] == own.total()
    return found


def read_firefox(document: dict[str, Any]) -> dict[tuple[str, str], Counter[Stack]]:
    found: dict[tuple[str, str], Counter[Stack]] = {}
    for thread in document["threads"]:
        strings, stacks = thread["stringArray"], thread["stackTable"]
        for name in ("stackTable", "frameTable", "funcTable", "resourceTable", "samples"):
            lengths = {len(column) for column in thread[name].values() if isinstance(column, list)}
            assert lengths <= {thread[name]["length"]}, name
        own = found.setdefault((thread["name"], thread["pid"]), Counter())
        for stack in thread["samples"]["stack"]:
            path: list[str] = []
            while stack is not None:
                function = thread["frameTable"]["func"][stacks["frame"][stack]]
                path.append(strings[thread["funcTable"]["name"][function]])
                stack = stacks["prefix"][stack]
            own[tuple(reversed(path))] += 1
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
    return found

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.remedy.full_plan import make_plan

from nodescope.errors import UsageError
from nodescope.remedy.plan_documents import parse_plan, plan_document, read_plan
from nodescope.remedy.plan_words import render_plan


def _written() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(plan_document(make_plan())))
    return document


def test_a_plan_comes_back_as_it_was() -> None:
    assert parse_plan(_written()) == make_plan()


def test_the_document_has_the_fields_that_others_rely_on() -> None:
    document = _written()
    assert {"id", "boot", "expires", "steps", "refused", "elsewhere"} <= document.keys()
    for step in document["steps"]:
        assert {"kind", "target", "why", "changes", "undo", "predicts"} <= step.keys()
    assert {"target", "reason"} <= document["refused"][0].keys()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("steps", 0, "arguments", "timeout_s"), "0"),
        (("steps", 0, "target", "name"), "kubelet.service"),
        (("steps", 4, "consent"), ""),
        (("rests_on", 0, "value"), "sha256:cd"),
        (("boot",), "other"),
        (("expires_ns",), 2_000_000_000_000_000_000),
    ],
)
def test_a_plan_that_was_edited_is_refused(path: tuple[str | int, ...], value: object) -> None:
    document = _written()
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(UsageError, match="was changed after it was made"):
        parse_plan(document)


@pytest.mark.parametrize("name", sorted(plan_document(make_plan()).keys() - {"made", "expires"}))
def test_a_missing_or_wrong_field_is_named(name: str) -> None:
    for value in (None, 3.5, ["x"], {"a": 1}):
        document = copy.deepcopy(_written())
        document[name] = value
        if (name, value) in (("archive", None), ("cannot", ["x"])):
            continue  # these are what such a field may be
        with pytest.raises(UsageError):
            parse_plan(document)


def test_a_step_of_an_unknown_kind_is_refused() -> None:
    document = _written()
    document["steps"][0]["kind"] = "run_anything"
    with pytest.raises(UsageError, match="run_anything"):
        parse_plan(document)


def test_a_later_version_is_refused() -> None:
    with pytest.raises(UsageError, match="version 9"):
        parse_plan(_written() | {"version": 9})


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b'{"version": 1}'])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(UsageError):
        read_plan(tmp_path / "plan.json")


def test_the_text_names_all_that_is_touched_refused_and_lost() -> None:
    text = " ".join(render_plan(make_plan()).split())
    for part in (
        "stop agent.service", "multi-user.target.wants/agent.service (link): removed",
        "4,007 zombies freed (3,806 to 4,207)", "--consent /dev/shm/agent", "cannot be undone",
        "kubelet.service: 12 pods run in it (`--i-know kubelet.service` overrules this)",
        "container web: a pod declares it", "a reboot clears all 4,206 zombies", "preset",
    ):  # fmt: skip
        assert part in text


def test_an_empty_plan_says_so() -> None:
    from dataclasses import replace

    assert "Nothing to do" in render_plan(replace(make_plan(), steps=()))

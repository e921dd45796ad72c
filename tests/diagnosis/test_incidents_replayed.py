"""Incidents as people paste them: excerpts of logs, imported, and what must be read in them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis, Finding
from nodescope.exchange.import_files import import_files
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

FILES = sorted((Path(__file__).parent / "incidents").glob("*.toml"))
# What only an observer of the node can say.
UNSEEN = ("no core that could explain it", "did not rise", "0 of the", "none of its own")


def replay(path: Path, folder: Path) -> tuple[dict[str, Any], Diagnosis]:
    """Import the log of a file, and diagnose all of it."""
    told = tomllib.loads(path.read_text("utf-8"))
    log = folder / "kernel.log"
    log.write_text(told["log"].lstrip("\n"), "utf-8")
    import_files([log], folder / "archive")
    recording = Recording.open(folder / "archive")
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    return told, diagnose(recording, window)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_incident_is_read_as_it_should_be(path: Path, tmp_path: Path) -> None:
    told, found = replay(path, tmp_path)
    expected = told.get("finding", [])
    assert [each.symptom.kind for each in found.findings][: len(expected)] == [
        each.get("symptom", found.findings[number].symptom.kind)
        for number, each in enumerate(expected)
    ]
    assert len(found.findings) == len(expected)
    assert not expected or all(each.what != "kernel log" for each in found.missing)
    for finding, wanted in zip(found.findings, expected, strict=True):
        check(finding, wanted)


def check(finding: Finding, wanted: dict[str, Any]) -> None:
    """Compare one finding with what is written of it; what is not written is left open."""
    chain = finding.chains[0] if finding.chains else None
    said = " | ".join(link.statement for link in chain.links) if chain is not None else ""
    assert not any(claim in said for claim in UNSEEN)
    if "ends" in wanted or wanted.get("explained") is False:
        assert chain is None or not chain.explains
        assert finding.ends is not None
        assert wanted.get("ends", "") in finding.ends.consequence
        return
    assert chain is not None
    if "root" in wanted:
        assert [chain.root.kind, chain.root.name] == wanted["root"]
    assert chain.root.kind == wanted.get("root_kind", chain.root.kind)
    assert wanted.get("root_has", "") in chain.root.name
    assert chain.mechanism == wanted.get("mechanism", chain.mechanism)
    assert chain.confidence <= wanted.get("at_most", 1.0)
    assert len(finding.repeats) == wanted.get("repeats", len(finding.repeats))
    assert {each.kind for each in finding.also} >= set(wanted.get("also", ()))
    steps = [step.kind for step in chain.steps]
    assert steps == wanted.get("proposes", steps)
    for text in wanted.get("says", ()):
        assert text in said

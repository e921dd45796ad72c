from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sources.systemd import journal_files

from nodescope.cli.main import main

_SERVICE = "[Service]\nExecStart=/bin/agent\n[Install]\nWantedBy=multi-user.target\n"
_ETC, _USR = "etc/systemd/system", "usr/lib/systemd/system"


def _enable(root: Path, name: str, text: str) -> None:
    file = root / _USR / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    link = root / _ETC / "multi-user.target.wants" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"/{_USR}/{name}")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A mounted image: no process, no bus, no journal."""
    root = tmp_path / "image"
    _enable(root, "healthy.service", _SERVICE)
    _enable(root, "preset.service", _SERVICE)
    preset = root / "usr/lib/systemd/system-preset/10-image.preset"
    preset.parent.mkdir(parents=True)
    preset.write_text("enable preset.service\n")
    return root


def _audit(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, str]]:
    code = main(["audit", "--json", *options])
    findings = json.loads(capsys.readouterr().out)
    assert all(list(each) == ["kind", "name", "verdict", "reason", "evidence"] for each in findings)
    return code, {each["name"]: each["verdict"] for each in findings}


def test_an_image_is_judged_by_its_files(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _enable(image, "held.service", f"[Unit]\nRequires=missing.service\n{_SERVICE}")
    _enable(image, "conditioned.service", f"[Unit]\nConditionPathExists=/opt/agent\n{_SERVICE}")
    _enable(image, "runtime.service", f"[Unit]\nConditionPathExists=/run/agent\n{_SERVICE}")
    code, found = _audit(capsys, "--root", str(image))
    assert code == 1
    assert found == {
        "held.service": "held_back",
        "conditioned.service": "held_back",
        "preset.service": "unused",
    }


def test_the_journal_of_an_image_tells_how_its_units_fared(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _enable(image, "held.service", f"[Unit]\nRequires=base.service\n{_SERVICE}")
    journal_files.write(image / "var/log/journal/0123456789abcdef0123456789abcdef", "regular")
    assert main(["audit", "--json", "--root", str(image)]) == 1
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert {name: each["verdict"] for name, each in found.items()} == {
        "crash.service": "looping",
        "limit.service": "failing",
        "base.service": "failing",
        "noexec.service": "failing",
        "held.service": "held_back",
        "asserted.service": "held_back",
        "preset.service": "unused",
    }
    assert "base.service" in found["held.service"]["reason"]
    assert "gave up" in found["limit.service"]["reason"]


def test_a_socket_makes_a_unit_used(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    code, found = _audit(capsys, "--root", str(image))
    assert (code, found) == (0, {})


def test_what_could_not_be_seen_is_said(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--root", str(image)]) == 1
    said = capsys.readouterr()
    assert "no journal here" in said.err
    assert "preset.service" in said.out


def test_a_place_without_anything_is_no_good_health(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "--root", str(tmp_path)]) == 2
    assert "--systemd-bus" in capsys.readouterr().err

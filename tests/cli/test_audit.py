from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sources.systemd import journal_files

from nodescope.cli.main import main
from nodescope.errors import SourceAbsent
from nodescope.sources.containers.runtimes import Runtimes
from nodescope.sources.places import Places
from nodescope.sources.systemd.survey import read_survey

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
    (root / _ETC / "healthy.service").write_text(_SERVICE)  # of whoever made the image
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


_DPKG = """\
Package: agent
Status: install ok installed
Priority: {priority}
Provides: some-agent (= 2), other
{more}
Package: reader
Status: {status}
Priority: optional
Depends: libc6 (>= 2), nothing | {depends}:any (>= 1)
"""


def _packaged(root: Path, **values: str) -> None:
    known = {"priority": "optional", "more": "", "status": "install ok installed"}
    status = root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True, exist_ok=True)
    status.write_text(_DPKG.format(**{**known, "depends": "else", **values}))
    files = root / "var/lib/dpkg/info/agent.list"
    files.parent.mkdir(exist_ok=True)
    files.write_text("/.\n/lib/systemd/system\n/lib/systemd/system/agent.service\n")


def test_in_an_image_every_link_is_the_images(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a package enables its own unit: a link in /etc to a file of the vendor."""
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    _enable(image, "agent.service", _SERVICE)
    assert _audit(capsys, "--root", str(image)) == (1, {"agent.service": "unused"})
    _packaged(image)
    assert _audit(capsys, "--root", str(image)) == (1, {"agent.service": "unused"})


@pytest.mark.parametrize(
    "packaged",
    [{"priority": "standard"}, {"depends": "agent"}, {"depends": "some-agent"}],
)
def test_what_other_packages_need_is_used(
    image: Path, capsys: pytest.CaptureFixture[str], packaged: dict[str, str]
) -> None:
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    _enable(image, "agent.service", _SERVICE)
    _packaged(image, **packaged)
    assert _audit(capsys, "--root", str(image)) == (0, {})
    if "depends" in packaged:
        _packaged(image, **packaged, status="deinstall ok config-files")
        assert _audit(capsys, "--root", str(image)) == (1, {"agent.service": "unused"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{_ETC}/agent.service.d/10-ours.conf", "[Service]\nNice=1\n"),
        (f"{_USR}/agent.timer", "[Timer]\nOnBootSec=1\n"),
        (f"{_USR}/user.service", "[Unit]\nAfter=agent.service\n[Service]\nExecStart=/bin/true\n"),
        (f"{_USR}/agent.service", f"[Unit]\nBefore=time-sync.target\n{_SERVICE}"),
        (f"{_USR}/agent.service", f"{_SERVICE}[Service]\nBusName=org.example\n"),
        (f"{_USR}/agent.service", f"{_SERVICE}[Service]\nStandardInput=tty-force\n"),
        (f"{_USR}/agent.service", f"{_SERVICE}[Service]\nType=oneshot\n"),
        (f"{_USR}/agent.service", f"[Unit]\nConditionPathExists=/run/x\n{_SERVICE}"),
        (f"{_USR}/called.socket", "[Socket]\nListenStream=80\n"),  # called.service is an alias
    ],
)
def test_what_somebody_has_a_use_for_is_not_named(
    image: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    _enable(image, "agent.service", _SERVICE)
    (image / _ETC / "called.service").symlink_to(f"/{_USR}/agent.service")
    (image / name).parent.mkdir(exist_ok=True)
    (image / name).write_text(text)
    assert _audit(capsys, "--root", str(image)) == (0, {})


def test_a_circle_of_units_is_told_of_each(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _enable(image, "first.service", f"[Unit]\nAfter=third.target\n{_SERVICE}")
    _enable(image, "second.service", f"[Unit]\nBefore=third.target\n{_SERVICE}")
    (image / _USR / "third.target").write_text("[Unit]\nDescription=x\n")
    assert _audit(capsys, "--root", str(image)) == (1, {
        "preset.service": "unused", "first.service": "unused",
    })  # fmt: skip
    (image / _USR / "first.service").write_text(
        f"[Unit]\nAfter=third.target\nBefore=second.service\n{_SERVICE}"
    )
    main(["audit", "--json", "--root", str(image)])
    told = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert {name: each["verdict"] for name, each in told.items()} == {
        "first.service": "held_back",
        "second.service": "held_back",
        "preset.service": "unused",
    }
    way = ["first.service", "third.target", "second.service", "first.service"]
    assert told["first.service"]["evidence"]["cycle"] == way
    assert f"({' after '.join(way)})" in told["first.service"]["reason"]


def test_a_socket_makes_a_unit_used(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    code, found = _audit(capsys, "--root", str(image))
    assert (code, found) == (0, {})


def test_what_could_not_be_seen_is_said(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--root", str(image)]) == 1
    said = capsys.readouterr()
    assert "preset.service" in said.out
    assert "Not seen: " in said.out
    assert "no journal here" in said.out


def test_what_cannot_be_seen_is_not_called_healthy(
    image: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13, point 5: without bus and journal the audit said that all is well, and exited 0."""
    (image / _USR / "preset.socket").write_text("[Socket]\nListenStream=80\n")
    survey = read_survey(Places(image))
    monkeypatch.setattr("nodescope.sources.systemd.survey.read_survey", lambda places: survey)
    monkeypatch.setattr("nodescope.sources.containers.runtimes.Runtimes", _no_runtimes)
    assert main(["audit", "--watch", "1ms"]) == 2
    said = capsys.readouterr().out
    assert said.startswith("UNKNOWN: nothing was found, but this could not be judged: states of")
    assert "Not seen: " in said
    assert "no journal here" in said
    assert "no container runtime" in said
    assert main(["audit", "--watch", "1ms", "--json"]) == 2
    said_apart = capsys.readouterr()
    assert json.loads(said_apart.out) == []
    assert "no journal here" in said_apart.err


def _no_runtimes(places: Places) -> Runtimes:
    raise SourceAbsent("containers", "no container runtime here")


def test_a_place_without_anything_is_no_good_health(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "--root", str(tmp_path)]) == 2
    assert "--systemd-bus" in capsys.readouterr().err

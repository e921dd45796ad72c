"""`nodescope audit --root`: what the first boot of an image starts and nobody asked for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.image_roots import (
    BASE_FILES,
    BUS,
    ETC,
    SERVICE,
    UNITS,
    add_container,
    add_dpkg,
    enable,
    enable_by_script,
    make_base,
    make_debian,
    make_rpm_database,
    plant,
    rpm_header,
    write,
)

from nodescope.cli.main import main


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return make_debian(tmp_path / "image")


def _gate(
    capsys: pytest.CaptureFixture[str], image: Path, *options: str
) -> tuple[int, dict[str, Any]]:
    code = main(["audit", "--root", str(image), "--format", "json", *options])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def _found(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in document["findings"]}


def test_the_base_system_is_no_finding(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _gate(capsys, image)
    assert (code, document["findings"], document["healthy"]) == (0, [], True)
    assert document["base_system"] == 5  # journal, its bus.socket, cron, two generators


def test_a_package_that_starts_its_daemon_is_found_with_who_and_why(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(image, f"{UNITS}/web.service", SERVICE)
    add_dpkg(image, "web-common", ("/lib/systemd/system/web.service",), Version="2:3-4")
    add_dpkg(image, "web", (), Depends="libc6, other | web-common (>= 2)")
    write(image, "var/lib/apt/extended_states", "Package: web-common\nAuto-Installed: 1\n")
    enable_by_script(image, "web.service")
    code, document = _gate(capsys, image)
    assert code == 1
    evidence = _found(document)["web.service"]["evidence"]
    assert evidence["chain"] == [
        "default.target", "graphical.target", "multi-user.target", "web.service",
    ]  # fmt: skip
    assert (evidence["package"], evidence["version"]) == ("web-common", "2:3-4")
    assert (evidence["origin"], evidence["installed_as_dependency"]) == ("script", True)
    assert evidence["needed_by"] == ["web"]


def test_every_planted_default_is_found_and_nothing_else(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = plant(image)
    code, document = _gate(capsys, image)
    assert code == 1
    assert set(_found(document)) == planted
    told = {name: each["evidence"]["origin"] for name, each in _found(document).items()}
    assert told["planted-preset.service"] == "preset"
    assert told["/etc/cron.d/planted"] == "unknown"
    assert _found(document)["/etc/cron.d/planted"]["evidence"]["line"] == 3
    assert "/opt/beacon" in _found(document)["/etc/cron.d/planted"]["reason"]
    assert main(["audit", "--root", str(image)]) == 1
    said = capsys.readouterr().out
    assert all(f" {name}\n" in said for name in planted)


def test_a_first_boot_applies_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = make_debian(tmp_path / "image", machine_id=None)
    for name in ("agent.service", "refused.service", "static.service"):
        text = SERVICE if name != "static.service" else "[Service]\nExecStart=/bin/x\n"
        write(image, f"{UNITS}/{name}", text)
    write(image, "usr/lib/systemd/system-preset/90-x.preset", "disable refused.service\n")
    found = _found(_gate(capsys, image)[1])
    assert set(found) == {"agent.service"}
    assert found["agent.service"]["evidence"]["origin"] == "preset"
    write(image, "etc/machine-id", "uninitialized\n")
    assert set(_found(_gate(capsys, image)[1])) == {"agent.service"}
    write(image, "etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    assert _gate(capsys, image)[0] == 0


_INSTALL = "[Service]\nExecStart=/bin/x\n[Install]\n"
_PRESET_UNITS = {
    "plain.service": f"{_INSTALL}WantedBy=multi-user.target\n",
    "refused.service": f"{_INSTALL}WantedBy=multi-user.target\n",
    "glob-a.service": f"{_INSTALL}RequiredBy=multi-user.target\n",
    "also.service": f"{_INSTALL}Also=brought.socket\nWantedBy=multi-user.target\n",
    "brought.socket": "[Socket]\nListenStream=1\n[Install]\nWantedBy=sockets.target\n",
    "brought.service": "[Service]\nExecStart=/bin/x\n",
    "tty@.service": f"{_INSTALL}DefaultInstance=one\nWantedBy=multi-user.target\n",
    "many@.service": f"{_INSTALL}WantedBy=multi-user.target\n",
    "static.service": "[Service]\nExecStart=/bin/x\n",
}
_PRESETS = """\
disable refused.service
disable brought.socket
enable many@.service a b
enable glob-*.service
disable glob-a.service
"""


@pytest.mark.debian("systemd")
def test_presets_of_a_first_boot_are_those_of_systemctl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `systemctl preset-all` enables is what a first boot is said to start."""
    image = make_debian(tmp_path / "image", machine_id=None)
    for name, text in _PRESET_UNITS.items():
        write(image, f"{UNITS}/{name}", text)
    write(image, "usr/lib/systemd/system-preset/90-x.preset", _PRESETS)
    foreseen = set(_found(_gate(capsys, image)[1]))
    preset = ["systemctl", f"--root={image}", "preset-all", "--preset-mode=enable-only"]
    subprocess.run(preset, check=True, capture_output=True)
    write(image, "etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    assert set(_found(_gate(capsys, image)[1])) == foreseen
    assert {"plain.service", "glob-a.service", "many@a.service", "tty@one.service"} <= foreseen
    assert not foreseen & {"refused.service", "static.service"}


def test_an_alias_and_a_drop_in_pull_in(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(image, f"{UNITS}/lightdm.service", "[Service]\nExecStart=/bin/dm\n")
    (image / ETC / "display-manager.service").symlink_to(f"/{UNITS}/lightdm.service")
    write(image, f"{UNITS}/side.service", "[Service]\nExecStart=/bin/side\n")
    write(image, f"{ETC}/cron.service.d/more.conf", "[Unit]\nWants=side.service\n")
    found = _found(_gate(capsys, image)[1])
    assert set(found) == {"lightdm.service", "side.service"}
    assert "cron.service.d/more.conf" in found["side.service"]["reason"]
    assert found["side.service"]["evidence"]["chain"][-2:] == ["cron.service", "side.service"]


def test_what_does_not_start_is_no_finding(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(image, f"{UNITS}/masked.service", SERVICE)
    enable(image, "masked.service")
    (image / ETC / "masked.service").symlink_to("/dev/null")
    write(image, f"{UNITS}/disabled.service", SERVICE)
    write(image, "etc/init.d/disabled", "#!/bin/sh\n", 0o755)
    (image / "etc/rc2.d").mkdir()
    (image / "etc/rc2.d/S01disabled").symlink_to("../init.d/disabled")  # a unit replaces it
    write(image, "etc/rc.local", "#!/bin/sh\n# nothing\nexit 0\n", 0o755)
    write(image, "etc/cron.d/left.dpkg-old", "@reboot root /bin/x\n")
    write(image, "etc/cron.daily/own", "[ -d /run/systemd/system ] && exit 0\n", 0o755)
    add_container(image, "stopped", "unless-stopped", HasBeenManuallyStopped=True)
    add_container(image, "once", "no")
    add_container(image, "ended", "on-failure")
    assert _gate(capsys, image)[0] == 0


def test_init_scripts_linger_quadlets_and_pods_are_found(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(image, "etc/init.d/old", "#!/bin/sh\n", 0o755)
    (image / "etc/rc3.d").mkdir()
    (image / "etc/rc3.d/S20old").symlink_to("../init.d/old")
    write(image, "var/lib/systemd/linger/build", "")
    write(image, "etc/containers/systemd/agent.container",
          "[Container]\nImage=x\n[Install]\nWantedBy=default.target\n")  # fmt: skip
    write(image, "etc/kubernetes/manifests/proxy.yaml", "kind: Pod\n")
    write(image, "etc/systemd/system-generators/own", "#!/bin/sh\n", 0o755)
    write(image, "etc/fstab", "srv:/x /mnt nfs defaults 0 0\n/dev/sda1 / ext4 defaults 0 1\n")
    kinds = {each["kind"]: name for name, each in _found(_gate(capsys, image)[1]).items()}
    assert kinds == {
        "sysv": "old.service", "linger": "build", "quadlet": "agent.service", "mount": "/mnt",
        "static pod": "/etc/kubernetes/manifests/proxy.yaml", "generator": "own",
    }  # fmt: skip


def test_the_bus_starts_on_demand_only(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(image, "usr/share/dbus-1/system-services/org.example.Agent.service",
          "[D-BUS Service]\nName=org.example.Agent\nExec=/bin/agent\n")  # fmt: skip
    code, document = _gate(capsys, image)
    assert code == 0
    assert [each["name"] for each in document["on_demand"]] == ["org.example.Agent"]


def test_an_administrator_asks_by_a_preset_of_his_own(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(image, f"{UNITS}/web.service", SERVICE)
    add_dpkg(image, "web", (f"/{UNITS}/web.service",))
    enable(image, "web.service")
    found = _found(_gate(capsys, image)[1])
    assert found["web.service"]["evidence"]["origin"] == "administrator"
    write(image, "etc/systemd/system-preset/10-ours.preset", "enable web.service\n")
    code, document = _gate(capsys, image)
    assert [each["name"] for each in document["asked"]] == ["web.service"]
    assert (code, document["findings"]) == (0, [])


_ALLOWED = """
[[allow]]
name = "planted*.s*"
reason = "ours"
[[allow]]
path = "/etc/*"
kind = "cron"
reason = "a beacon"
[[allow]]
package = "nothing-*"
reason = "of last year"
"""


def test_the_allow_list_allows_by_globs_and_names_what_it_no_longer_needs(
    image: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plant(image)
    allow = write(tmp_path, "allow.toml", _ALLOWED)
    code, document = _gate(capsys, image, "--allow", str(allow))
    assert code == 1
    assert set(_found(document)) == {"sweep.timer", "/etc/rc.local", "ecsagent"}
    assert {each["allowed_because"] for each in document["allowed"]} == {"ours", "a beacon"}
    assert [each["entry"] for each in document["unused_allowances"]] == ["package nothing-*"]
    lines = write(tmp_path, "allow.txt", "# what may start\n*  # all of it, for now\n")
    code, document = _gate(capsys, image, "--allow", str(lines))
    assert (code, document["findings"]) == (0, [])
    assert len(document["allowed"]) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssh.service\n", "line 1 lacks a reason"),
        ('[[allow]]\nname = "x"\n', "entry 1 lacks a reason"),
        ('[[allow]]\nreason = "x"\n', "entry 1 lacks one of"),
        ('[[allow]]\nunit = "x"\nreason = "y"\n', "unknown key 'unit'"),
        ("[[allow]\n", "allow"),
    ],
)
def test_a_wrong_allow_list_is_no_pass(
    image: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, said: str
) -> None:
    allow = write(tmp_path, "allow.toml" if "[" in text else "allow", text)
    assert main(["audit", "--root", str(image), "--allow", str(allow)]) == 2
    assert said in capsys.readouterr().err


def test_pipelines_read_sarif_and_junit(
    image: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plant(image)
    allow = write(tmp_path, "allow", "*.timer  # swept\n")
    options = ["audit", "--root", str(image), "--allow", str(allow), "--format"]
    assert main([*options, "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert len(run["results"]) == 6
    assert sum("suppressions" in each for each in run["results"]) == 1
    assert len({each["partialFingerprints"]["nodescope/v1"] for each in run["results"]}) == 6
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    assert main([*options, "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "5", "1")


def test_an_rpm_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = make_base(tmp_path / "image")
    for name in ("agent.service", "enabled.service"):
        write(image, f"{UNITS}/{name}", SERVICE)
        enable(image, name)
    write(image, "usr/lib/systemd/system-preset/90-default.preset",
          "enable agent.service\ndisable *\n")  # fmt: skip
    headers = [
        rpm_header("systemd", BASE_FILES, ("bus-daemon", "/bin/sh")),
        rpm_header("bus-daemon", tuple(f"/{UNITS}/{name}" for name in BUS)),
        rpm_header("cronie", (f"/{UNITS}/cron.service",), source="cronie"),
        rpm_header("agent", (f"/{UNITS}/agent.service",)),
        rpm_header("vendor", (f"/{UNITS}/enabled.service",), script="systemctl enable enabled"),
    ]
    make_rpm_database(image, headers)
    found = _found(_gate(capsys, image)[1])
    assert set(found) == {"agent.service", "enabled.service", "cron.service"}
    told = {name: each["evidence"]["origin"] for name, each in found.items()}
    assert told["agent.service"] == "preset"
    assert told["enabled.service"] == "script"
    assert found["agent.service"]["evidence"]["version"] == "1.0-1"
    write(image, "etc/dnf/protected.d/cron.conf", "cronie\n")
    assert "cron.service" not in _found(_gate(capsys, image)[1])


@pytest.mark.parametrize(("name", "form"), [("Packages", "Berkeley DB"), ("Packages.db", "ndb")])
def test_an_older_database_of_rpm_is_named_and_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, form: str
) -> None:
    image = make_base(tmp_path / "image")
    write(image, f"var/lib/rpm/{name}", "x")
    code, document = _gate(capsys, image)
    assert code == 2
    assert any(form in each and "not readable" in each for each in document["not_observed"])


def test_a_hostile_image_neither_hangs_nor_leads_out(
    image: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Links out of the root, loops of links, FIFOs, binary and huge files, many units."""
    outside = tmp_path / "outside"
    write(outside, "secret.service", SERVICE)
    write(outside, "secret", "@reboot root /bin/secret\n")
    up = "../" * 30
    for name in ("sysinit.target.wants", "timers.target.wants", "cron.service.d"):
        (image / ETC / name).symlink_to(outside, target_is_directory=True)
    (image / "etc/cron.d").symlink_to(f"{up}{outside}")
    (image / "var/spool").mkdir(parents=True)
    (image / "var/spool/cron").symlink_to(outside)
    (image / "var/lib/docker").symlink_to(outside)
    (image / ETC / "loop-a.service").symlink_to("loop-b.service")
    (image / ETC / "loop-b.service").symlink_to("loop-a.service")
    (image / "etc/init.d").symlink_to("init.d")
    for name in ("fifo.service", "huge.service", "binary.service", "gone.service"):
        enable(image, name)
    for path in (f"{UNITS}/fifo.service", "etc/crontab", "etc/fstab", "etc/rc.local"):
        os.mkfifo(image / path)
    os.mkfifo(image / "var/lib/dpkg/info/fifo.list")
    with (image / UNITS / "huge.service").open("wb") as file:
        file.truncate(8 << 30)  # a hole
    (image / UNITS / "binary.service").write_bytes(bytes(range(256)) * 64)
    for number in range(3_000):
        name = f"many-{number}.service"
        (image / UNITS / name).write_text(SERVICE)
    (image / ETC / "multi-user.target.wants/many-1.service").symlink_to("/dev/zero")
    code, document = _gate(capsys, image)
    assert code == 1
    assert "secret" not in json.dumps(document)
    names = set(_found(document))
    assert {"many-1.service", "binary.service", "huge.service"} <= names
    assert not any(name.startswith("many-2") for name in names)


def test_without_a_target_or_packages_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = make_base(tmp_path / "image")
    _, document = _gate(capsys, image)
    assert any("no records of dpkg or rpm" in each for each in document["not_observed"])
    assert main(["audit", "--allow", "x"]) == 2
    assert "--allow needs --root" in capsys.readouterr().err

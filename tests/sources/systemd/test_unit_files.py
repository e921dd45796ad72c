from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.sources.places import resolve_inside
from nodescope.sources.systemd.unit import Check
from nodescope.sources.systemd.unit_conditions import try_checks
from nodescope.sources.systemd.unit_files import UnitFiles, vendor_of

_INSTALL = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
_ETC, _USR = "etc/systemd/system", "usr/lib/systemd/system"


def _write(root: Path, path: str, text: str = _INSTALL) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _link(root: Path, path: str, target: str) -> None:
    link = root / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write(tmp_path, f"{_USR}/wanted.service")
    _link(tmp_path, f"{_ETC}/multi-user.target.wants/wanted.service", f"/{_USR}/wanted.service")
    _write(tmp_path, f"{_USR}/idle.service")
    _write(tmp_path, f"{_USR}/static.service", "[Service]\nExecStart=/bin/true\n")
    _write(tmp_path, f"{_USR}/gone.service")
    _link(tmp_path, f"{_ETC}/gone.service", "/dev/null")
    _write(tmp_path, f"{_USR}/empty.service", "")
    _write(tmp_path, f"{_USR}/agent@.service")
    _link(tmp_path, f"{_ETC}/multi-user.target.wants/agent@1.service", f"/{_USR}/agent@.service")
    _link(tmp_path, f"{_ETC}/other.service", f"/{_USR}/wanted.service")
    _write(tmp_path, f"{_USR}/also.service", "[Service]\n[Install]\nAlso=idle.service\n")
    return tmp_path


def _states(root: Path) -> dict[str, str | None]:
    files = UnitFiles(root)
    return {name: files.unit(name).file_state for name in files.names()}


def test_states_are_those_of_systemctl(root: Path) -> None:
    assert _states(root) == {
        "wanted.service": "enabled",
        "idle.service": "disabled",
        "static.service": "static",
        "gone.service": "masked",
        "empty.service": "masked",
        "agent@1.service": "enabled",
        "other.service": "alias",
        "also.service": "indirect",
    }


def test_the_administrators_file_goes_before_the_vendors(root: Path) -> None:
    _write(root, f"{_ETC}/wanted.service", "[Service]\nType=notify\nExecStart=/bin/x\n")
    unit = UnitFiles(root).unit("wanted.service")
    assert (unit.vendor, unit.type) == ("administrator", "notify")
    assert unit.fragment == f"/{_ETC}/wanted.service"


def test_drop_ins_add_and_begin_anew(root: Path) -> None:
    _write(root, f"{_USR}/idle.service", "[Unit]\nAfter=a.service b.service\n[Service]\nSlice=x\n")
    _write(root, f"{_ETC}/idle.service.d/20.conf", "[Unit]\nAfter=d.service\n")
    _write(root, f"{_USR}/idle.service.d/10.conf", "[Unit]\n# not: After=q\nAfter=\nAfter=c.\\\n")
    assert UnitFiles(root).unit("idle.service").after == ("c.", "d.service")


def test_presets_are_tried_in_order_of_names(root: Path) -> None:
    _write(root, "etc/systemd/system-preset/50-x.preset", "enable want*\ndisable *\n")
    _write(root, "usr/lib/systemd/system-preset/50-x.preset", "disable wanted.service\n")
    _write(root, "usr/lib/systemd/system-preset/40-y.preset", "; none\nenable agent@.service 1\n")
    files = UnitFiles(root)
    rule = "enable want* (/etc/systemd/system-preset/50-x.preset:1)"
    assert files.unit("wanted.service").preset_rule == rule
    assert files.unit("idle.service").preset == "disabled"
    assert files.unit("agent@1.service").preset == "enabled"
    assert files.unit("agent@1.service").preset_rule is not None


def test_without_presets_everything_is_enabled_and_no_rule_names_it(root: Path) -> None:
    unit = UnitFiles(root).unit("idle.service")
    assert (unit.preset, unit.preset_rule) == ("enabled", None)
    _write(root, "etc/systemd/system-preset/99.preset", "enable *\n")
    assert UnitFiles(root).unit("idle.service").preset_rule is None


def test_a_link_does_not_lead_out_of_the_root(root: Path, tmp_path: Path) -> None:
    _link(root, "etc/out", "/../../../../secret")
    assert resolve_inside(root, "/etc/out") == str(root / "secret")
    _link(root, "etc/circle", "circle")
    assert resolve_inside(root, "/etc/circle/x").startswith(str(root))


def test_what_is_no_ordinary_file_is_not_read(root: Path) -> None:
    os.mkfifo(root / _USR / "pipe.service")
    assert UnitFiles(root).unit("pipe.service").file_state == "static"


def test_a_root_without_systemd_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        UnitFiles(tmp_path)


def test_who_put_a_file_there() -> None:
    assert vendor_of("/usr/lib/systemd/system/x.service") == "vendor"
    assert vendor_of("/etc/systemd/system/x.service") == "administrator"
    assert vendor_of("/run/systemd/transient/x.service") == "transient"
    assert vendor_of(None) is None


def test_conditions_that_files_can_answer(tmp_path: Path) -> None:
    _write(tmp_path, "etc/there", "x")
    checks = (
        Check("ConditionPathExists", "/etc/there"),
        Check("ConditionPathExists", "/etc/there", negated=True),
        Check("ConditionFileNotEmpty", "/etc/nowhere"),
        Check("ConditionPathIsDirectory", "/etc"),
        Check("ConditionPathExistsGlob", "/etc/th*"),
        Check("ConditionDirectoryNotEmpty", "/etc/nowhere"),
        Check("ConditionPathExists", "/run/something"),
        Check("ConditionVirtualization", "container"),
    )
    met = [check.met for check in try_checks(tmp_path, checks)]
    assert met == [True, False, False, True, True, False, None, None]

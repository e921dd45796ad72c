from __future__ import annotations

import configparser
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy/nodescope.service"


def _service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


@pytest.mark.debian("systemd")
def test_systemd_accepts_every_line_of_the_unit(tmp_path: Path) -> None:
    # verify looks for the program, which need not be installed where tests run.
    command = shutil.which("nodescope", path=str(Path(sys.executable).parent)) or "/bin/true"
    unit = tmp_path / "nodescope.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/nodescope", f'"{command}"'))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if "nodescope.service" in line]
    assert (done.returncode, complaints) == (0, [])


def test_it_holds_the_capabilities_doctor_asks_for_and_no_others() -> None:
    from nodescope.sources.access.verdict import ALL_CAPABILITIES

    granted = _service()["CapabilityBoundingSet"].split()
    assert sorted(granted) == sorted(f"CAP_{name.upper()}" for name in ALL_CAPABILITIES)


def test_the_documented_manifest_and_command_give_the_same_rights() -> None:
    from nodescope.sources.access.verdict import ALL_CAPABILITIES

    text = (UNIT.parents[1] / "docs/deployment.md").read_text()
    assert f"setcap {','.join(f'cap_{name}' for name in ALL_CAPABILITIES)}+ep" in text
    assert f"add: [{', '.join(json.dumps(name.upper()) for name in ALL_CAPABILITIES)}]" in text
    assert all(f"| `CAP_{name.upper()}`" in text for name in ALL_CAPABILITIES)


def test_it_is_a_notifying_service_with_a_watchdog() -> None:
    service = _service()
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) > 0

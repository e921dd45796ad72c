"""`fix validate` and `fix forecast` as commands: on a real systemd, and on recordings."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.cli.main import main
from nodescope.records.action import Target
from nodescope.remedy.plan import Baseline, Plan, PlanStep
from nodescope.remedy.plan_documents import plan_document

UNIT = "leaky.service"
LOOP = """
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/false
Restart=always
RestartSec=500ms
"""
BUNDLES = Path(__file__).parents[1] / "diagnosis/bundles"


def write_plan(path: Path, *baselines: Baseline) -> Plan:
    step = PlanStep("stop_unit", Target("unit", UNIT), "it loops", {}, (), (), "start it again")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    now = time.time_ns()
    plan = Plan("node", boot, now, now + 10**12, (), (step,), baselines=baselines, elsewhere={})
    path.write_text(json.dumps(plan_document(plan)))
    return plan


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    skip_without_namespaces()
    running = Guest(tmp_path / "guest", {UNIT: LOOP}, {})
    yield running
    running.stop()


@pytest.mark.root
@pytest.mark.live
@pytest.mark.slow
@pytest.mark.debian("systemd")
def test_a_stopped_loop_is_proven_and_one_that_comes_back_refuted(
    guest: Guest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def restarts() -> int:
        shown = guest.run("systemctl", "show", "--property=NRestarts", "--value", UNIT)
        return int(shown.stdout or b"0")

    began, first = time.monotonic(), restarts()
    guest.wait_for(lambda: restarts() >= first + 8, "the unit loops")
    count, watched_s = restarts() - first, time.monotonic() - began
    loop = Baseline(
        "unit_restarts", UNIT, "mechanism", count, watched_s,
        overdispersion=0.05, longest_gap_s=2 * watched_s / count, backoff_s=0,
    )  # fmt: skip
    path = tmp_path / "plan.json"
    plan = write_plan(path, loop)
    asked = ["fix", "validate", str(path), "--systemd-bus", guest.bus, "--json"]

    assert main([*asked, "--applied", f"@{time.time() - 3}", "--for", "4s"]) == 1
    unmended = json.loads(capsys.readouterr().out)
    assert unmended["mechanism"]["verdict"] == "refuted", unmended

    guest.run("systemctl", "stop", UNIT)
    fixes = guest.root / "var/lib/nodescope/fixes"
    fixes.mkdir(parents=True, exist_ok=True)
    now_ns = time.time_ns()
    records: list[dict[str, object]] = [
        {"kind": kind, "number": 1, "attempt": 1, "wall_ns": now_ns, "content": {}}
        for kind in ("intent", "done")
    ]
    lines = [json.dumps({"sum": "", "record": record}) for record in records]
    (fixes / f"{plan.id}.journal").write_text("\n".join([*lines, ""]))
    # Silence of thirty rounds, however slow this machine is.
    seconds = round(30 * watched_s / count) + 2
    assert main([*asked, "--for", f"{seconds}s"]) == 0
    mended = json.loads(capsys.readouterr().out)
    assert mended["mechanism"]["verdict"] == "proven", mended
    assert mended["mechanism"]["p"] <= 0.01
    assert mended["outcome"]["verdict"] == "unknown"

    guest.run("systemctl", "start", "--no-block", UNIT)
    guest.wait_for(lambda: restarts() > 0, "the unit loops again")
    assert main([*asked, "--applied", f"@{time.time() - 3}", "--for", "4s"]) == 1
    assert json.loads(capsys.readouterr().out)["mechanism"]["verdict"] == "refuted"


def test_a_plan_that_was_not_applied_cannot_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    write_plan(path)
    assert main(["fix", "validate", str(path), "--root", str(tmp_path)]) == 2
    assert "was not applied here" in capsys.readouterr().err


def test_a_recording_from_before_the_plan_proves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, Baseline("unit_restarts", UNIT, "mechanism", 100, 1000))
    bundle = str(BUNDLES / "zombie-agent.bundle")
    asked = ["fix", "validate", str(path), "--archive", bundle, "--recorded"]
    assert main([*asked, "--applied", "1m ago"]) == 1
    out = capsys.readouterr().out
    assert "Mechanism stopped: unknown" in out
    assert "nothing was observed since" in out


def test_a_forecast_of_a_short_recording(capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(BUNDLES / "zombie-agent.bundle")
    assert main(["fix", "forecast", "--archive", bundle, "--json"]) == 1
    forecast = json.loads(capsys.readouterr().out)
    assert [each["will"] for each in forecast["node"]] == ["passed", "cannot say"]
    assert forecast["sources"][0]["comes_back"] is True
    assert main(["fix", "forecast", "--archive", bundle]) == 1
    assert "leaky.service: starts again by itself" in capsys.readouterr().out

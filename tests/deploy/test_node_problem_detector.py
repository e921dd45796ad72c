"""The monitor for node-problem-detector: only fields that it knows, and rules it can run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodescope.judgement.health import LOOP_KINDS

_CONFIG = Path(__file__).parents[2] / "deploy/node-problem-detector/nodescope-monitor.json"
# Of pkg/custompluginmonitor/types and pkg/types of node-problem-detector.
_TOP = {"plugin", "pluginConfig", "source", "conditions", "rules", "metricsReporting"}
_GLOBAL = {"invoke_interval", "timeout", "max_output_length", "concurrency",
           "enable_message_change_based_condition_update", "skip_initial_status"}  # fmt: skip
_RULE = {"type", "condition", "reason", "path", "args", "timeout", "invoke_interval"}
_GO_DURATION = re.compile(r"(\d+)(ms|s|m|h)")


def _seconds(text: str) -> float:
    match = _GO_DURATION.fullmatch(text)
    assert match is not None, text
    return int(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2]]


@pytest.fixture
def config() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(_CONFIG.read_text())
    return read


def test_every_field_is_one_that_it_knows(config: dict[str, Any]) -> None:
    assert set(config) <= _TOP
    assert config["plugin"] == "custom"
    assert set(config["pluginConfig"]) <= _GLOBAL
    assert config["pluginConfig"]["skip_initial_status"]  # else it reports health unseen
    types = {each["type"] for each in config["conditions"]}
    assert all(set(each) == {"type", "reason", "message"} for each in config["conditions"])
    longest = _seconds(config["pluginConfig"]["timeout"])
    for rule in config["rules"]:
        assert set(rule) <= _RULE
        assert rule["type"] == "permanent"  # a temporary one reports lost sight as a problem
        assert rule["condition"] in types
        assert _seconds(rule["timeout"]) <= longest
        assert _seconds(config["pluginConfig"]["invoke_interval"]) > 0
    words = [each["reason"] for each in (*config["conditions"], *config["rules"])]
    assert all(re.fullmatch(r"([A-Z][a-z]+)+", word) for word in (*words, *LOOP_KINDS.values()))
    assert {rule["args"][1] for rule in config["rules"]} == {"zombies", "loops", "cores", "network"}


def test_each_rule_runs_as_it_is_run_there(config: dict[str, Any], tmp_path: Path) -> None:
    """Without a recording at the place named: the answer is unknown, in one short line."""
    for rule in config["rules"]:
        command = [sys.executable, "-m", "nodescope.cli.main", *rule["args"]]
        ran = subprocess.run(
            command,
            env={"NODESCOPE_ARCHIVE": str(tmp_path / "none")},
            capture_output=True,
            timeout=60,  # what counts is that it ends: this machine may be busy
            check=False,
        )
        assert ran.returncode == 2, ran
        line = ran.stdout.strip()
        assert 0 < len(line) <= config["pluginConfig"]["max_output_length"]
        assert b"\n" not in line
        assert ran.stderr == b""

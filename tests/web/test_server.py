"""The real `nodescope serve`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.recorder_process import recording
from tests.waiting import wait_for
from tests.web.browser.serving import Server
from tests.web.conftest import TO_MS

from nodescope.web.static_files import is_built

NODESCOPE = [sys.executable, "-m", "nodescope.cli.main"]
TOKEN = "correct horse battery staple"


def fetch(link: str, path: str, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(link.rstrip("/") + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*NODESCOPE, "serve", *arguments], capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.live
@pytest.mark.beside
def test_it_serves_and_ends_when_told(small_story: Path) -> None:
    process = subprocess.Popen(
        [*NODESCOPE, "serve", "--archive", str(small_story), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        link = line.split()[-1]
        assert link.startswith("http://127.0.0.1:")
        status, body = fetch(link, "/api/recording")
        assert status == 200
        assert abs(json.loads(body)["to_ms"] - TO_MS) < 2000
        assert fetch(link, "/")[0] == 200
        assert fetch(link, "/api/nothing")[0] == 404
        assert fetch(link, "/api/recording", Host="evil.example")[0] == 403
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=90)
        assert process.returncode == 0
        assert said == ""
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.live
@pytest.mark.beside
def test_many_and_slow_clients_hold_up_nobody(small_story: Path) -> None:
    with Server(small_story) as server:
        lazy = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(50)]
        try:
            for number, each in enumerate(lazy):
                # Some never end their request, some never read the answer.
                half = "GET /api/flame HTTP/1.1\r\nHost: localhost\r\n"
                whole = f"{half.replace('flame', f'flame?width={500 + number}')}\r\n"
                each.sendall((half if number % 2 else whole * 3).encode())
            assert fetch(server.link, "/api/recording")[0] == 200
            assert fetch(server.link, "/api/cores?columns=100")[0] == 200
        finally:
            for each in lazy:
                each.close()
        assert fetch(server.link, "/api/recording")[0] == 200


@contextmanager
def followed(link: str) -> Iterator[Iterator[tuple[str, Any]]]:
    with urllib.request.urlopen(f"{link}api/follow", timeout=120) as stream:

        def events() -> Iterator[tuple[str, Any]]:
            name = ""
            for line in stream:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text.removeprefix("event: ")
                elif text.startswith("data: "):
                    yield name, json.loads(text.removeprefix("data: "))

        yield events()


@pytest.mark.root
@pytest.mark.live
@pytest.mark.beside
def test_it_follows_a_recorder(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with recording(archive, "--flush", "500ms"), Server(archive) as server:
        with followed(server.link) as events:
            name, first = next(events)
            assert name == "recording"
            assert first["live"] is True
            grown = next(told for _, told in events if told["to_ms"] >= first["to_ms"] + 3000)
            assert grown["revision"] != first["revision"]
        status, body = fetch(server.link, "/api/cores?columns=50&state=total")
        assert status == 200
        assert len(body) > 50 * len(os.sched_getaffinity(0))


@pytest.mark.live
@pytest.mark.beside
def test_an_archive_that_vanishes_is_told_to_followers(small_story: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    shutil.copytree(small_story, archive)
    with Server(archive) as server, followed(server.link) as events:
        assert next(events)[0] == "recording"
        archive.rename(tmp_path / "away")
        name, told = next(events)
        assert name == "gone"
        assert str(archive) in told["error"]
        (tmp_path / "away").rename(archive)
        assert next(events)[0] == "recording"
        wait_for(lambda: fetch(server.link, "/api/recording")[0] == 200, "an answer again")


@pytest.mark.live
@pytest.mark.beside
def test_a_token_guards_it(small_story: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    process = subprocess.Popen(
        [*NODESCOPE, "serve", "--archive", str(small_story), "--port", "0", "--host", "0.0.0.0",
         "--token-file", str(token)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().split()[-1].rstrip("/").rpartition(":")[2]
        link = f"http://127.0.0.1:{port}/"
        assert fetch(link, "/api/recording")[0] == 401
        assert fetch(link, "/api/recording", Authorization=f"Bearer {TOKEN}")[0] == 200
    finally:
        process.terminate()
        process.communicate(timeout=90)


@pytest.mark.live
@pytest.mark.beside
def test_an_empty_archive_is_waited_for(small_story: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    with Server(archive) as server:
        said = "".join(server.said)
        assert "nothing is recorded in it yet: waiting for a recorder" in said
        assert fetch(server.link, "/api/recording")[0] == 503
        shutil.copytree(small_story, archive, dirs_exist_ok=True)
        wait_for(lambda: fetch(server.link, "/api/recording")[0] == 200, "the recording")
        assert fetch(server.link, "/api/flame")[0] == 200


def test_what_cannot_be_served_says_why(small_story: Path, tmp_path: Path) -> None:
    refused = run("--archive", str(small_story), "--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "--token-file" in refused.stderr
    missing = run("--archive", str(tmp_path / "none"))
    assert missing.returncode == 2
    assert "there is no recording" in missing.stderr
    assert f"nodescope record --archive {tmp_path / 'none'}" in missing.stderr
    cut = tmp_path / "cut"
    shutil.copytree(small_story, cut)
    for path in cut.glob("segments/*/*.parquet"):
        os.truncate(path, 7)
    damaged = run("--archive", str(cut))
    assert damaged.returncode == 2
    assert "what is recorded in it cannot be read" in damaged.stderr
    assert "waiting for a recorder" not in damaged.stderr
    assert ("the page is not built" in damaged.stderr) == (not is_built())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = run("--archive", str(small_story), "--port", str(taken.getsockname()[1]))
    assert busy.returncode == 2
    assert "--port" in busy.stderr
    wrong = run("--archive", str(small_story), "--tls-cert", "/none", "--tls-key", "/none")
    assert wrong.returncode == 2
    assert "certificate" in wrong.stderr

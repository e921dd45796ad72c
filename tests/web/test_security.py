from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import open_client

from nodescope.errors import UsageError
from nodescope.web.security import CONTENT_POLICY, Safety
from nodescope.web.server import Address, choose_safety, is_loopback, read_token

TOKEN = "correct horse battery staple"


@pytest.fixture
def guarded(small_story: Path) -> Iterator[TestClient]:
    with open_client(small_story, Safety(token=TOKEN)) as client:
        yield client


# -- the names of the server, and who asks -----------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:8787", "[::1]:1"])
def test_our_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/recording", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", ""])
def test_another_name_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/recording", headers={"host": host})
    assert answer.status_code == 403
    assert "localhost" in answer.json()["hint"]


def test_a_page_of_another_site_may_not_ask(client: TestClient) -> None:
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ):
        assert client.get("/api/recording", headers=headers).status_code == 403, headers


def test_a_link_to_the_page_may_be_followed(client: TestClient) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers={**link, "sec-fetch-dest": "document"}).status_code == 200
    assert client.get("/", headers={**link, "sec-fetch-dest": "iframe"}).status_code == 403


def test_our_own_page_may_ask(client: TestClient) -> None:
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert client.get("/api/recording", headers=headers).status_code == 200


def test_every_answer_says_what_the_page_may_do(client: TestClient) -> None:
    for path in ("/", "/api/recording", "/api/nothing", "/api/cores?columns=x"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == CONTENT_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    refused = client.get("/", headers={"host": "evil.example"})
    assert refused.headers["content-security-policy"] == CONTENT_POLICY


def test_it_only_answers(client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = client.request(method, "/api/recording")
        assert answer.status_code == 405
        assert answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    ["/assets/../../app.py", "/assets/%2e%2e/%2e%2e/app.py", "/assets/..%2f..%2fapp.py",
     "/assets/.hidden", "/assets//etc/passwd", "/../../etc/passwd", "/assets/x%00.js"],
)  # fmt: skip
def test_no_path_reaches_other_files(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


# -- the token ---------------------------------------------------------------------


def test_without_the_token_nothing_is_told(guarded: TestClient) -> None:
    for path in ("/", "/api/recording", "/api/follow", "/api/openapi.json", "/assets/x"):
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "--token-file" in answer.json()["hint"]


@pytest.mark.parametrize("given", ["", "wrong", TOKEN + "x", TOKEN[:-1], "é"])
def test_another_token_is_refused(guarded: TestClient, given: str) -> None:
    headers = {b"authorization": f"Bearer {given}".encode()}
    assert guarded.get("/api/recording", headers=headers).status_code == 401
    assert guarded.get("/", params={"token": given}).status_code == 401


def test_the_token_as_a_header(guarded: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/recording", headers=headers).status_code == 200


def test_the_token_of_a_link_becomes_a_cookie(guarded: TestClient) -> None:
    answer = guarded.get("/", params={"token": TOKEN, "q": '"><script>'})
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert TOKEN not in answer.text
    assert "<script>" not in answer.text
    assert re.search(r'url=/\?q=%22%3E%3Cscript%3E"', answer.text)
    assert guarded.get("/api/recording").status_code == 200  # the client kept the cookie


def test_a_token_in_a_question_is_not_taken(guarded: TestClient) -> None:
    assert guarded.get("/api/recording", params={"token": TOKEN}).status_code == 401


def test_the_cookie_of_another_server_is_worth_nothing(
    small_story: Path, guarded: TestClient
) -> None:
    with open_client(small_story, Safety(token=TOKEN)) as other:
        other.get("/", params={"token": TOKEN})
        session = other.cookies["nodescope"]
    headers = {"cookie": f"nodescope={session}"}
    assert guarded.get("/api/recording", headers=headers).status_code == 401


def test_https_makes_the_cookie_secure(small_story: Path) -> None:
    with open_client(small_story, Safety(token=TOKEN, https=True)) as client:
        assert "secure" in client.get("/", params={"token": TOKEN}).headers["set-cookie"].lower()


# -- where it listens --------------------------------------------------------------


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "node.example"])
def test_another_address_needs_a_token_or_certificates(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        choose_safety(Address(host))
    assert "--token-file" in str(caught.value.hint)
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    assert choose_safety(Address(host, token_file=token)).token == TOKEN
    certificates = [tmp_path / name for name in ("cert", "key", "ca")]
    assert choose_safety(Address(host, 1, None, *certificates)).https


def test_half_a_certificate_is_refused(tmp_path: Path) -> None:
    for address in (
        Address(certificate=tmp_path),
        Address(key=tmp_path),
        Address(client_ca=tmp_path),
    ):
        with pytest.raises(UsageError):
            choose_safety(address)


def test_the_bound_name_is_one_of_ours(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    assert "node.example" in choose_safety(Address("Node.Example", token_file=token)).names
    assert "[fd00::1]" in choose_safety(Address("fd00::1", token_file=token)).names


def test_a_token_file_is_private_and_long_enough(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(UsageError, match="No such file"):
        read_token(path)
    path.write_text(TOKEN)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others may read it") as caught:
        read_token(path)
    assert "chmod 600" in str(caught.value.hint)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(UsageError, match="16 characters"):
        read_token(path)
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(UsageError, match="not text"):
        read_token(path)

"""A server on TLS that admits only who has a certificate of ours: the real handshake."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.web.browser.serving import Server

pytestmark = [pytest.mark.live, pytest.mark.beside]


def make_certificates(folder: Path) -> None:
    """An authority, a server's certificate and a client's, by openssl."""
    for name, subject in (("ca", "/CN=nodescope test"), ("other", "/CN=another authority")):
        _openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                 "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", subject)  # fmt: skip
    (folder / "server.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
        _openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                 "-out", f"{name}.csr", "-subj", f"/CN={name}")  # fmt: skip
        more = ["-extfile", "server.ext"] if name == "server" else []
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
                 "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2",
                 "-out", f"{name}.pem", *more)  # fmt: skip


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def ask(port: int, folder: Path, client: str | None) -> int:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if client is not None:
        context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    try:
        connection.request("GET", "/api/recording")
        return connection.getresponse().status
    finally:
        connection.close()


def test_only_who_has_a_certificate_of_ours_is_answered(tmp_path: Path, small_story: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    make_certificates(tmp_path)
    files = {"--tls-cert": "server.pem", "--tls-key": "server.key", "--client-ca": "ca.pem"}
    options = [word for name, file in files.items() for word in (name, str(tmp_path / file))]
    with Server(small_story, options) as server:
        assert ask(server.port, tmp_path, "client") == 200
        for who in (None, "stranger"):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                ask(server.port, tmp_path, who)

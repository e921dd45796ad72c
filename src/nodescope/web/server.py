"""Running the server: where it listens, who may ask, and its ending."""

from __future__ import annotations

import contextlib
import ipaddress
import shlex
import signal
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from nodescope.archive.memory import share_heap
from nodescope.errors import ArchiveError, NothingRecorded, UsageError
from nodescope.sources.places import Places
from nodescope.web.app import Server, make_app
from nodescope.web.security import LOOPBACK_NAMES, Safety
from nodescope.web.snapshot import ServedArchive

MOST_CONNECTIONS = 512
MOST_HEADER = 128 << 10  # a path of a flame graph may be long
SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and how to be sure of who asks."""

    host: str = "127.0.0.1"
    port: int = 8787
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None


def read_token(path: Path) -> str:
    """The token in a file that only its owner may read."""
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"--token-file {path}: {reason}", hint="give a readable file") from error
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(
            f"--token-file {path}: others may read it",
            hint=f"run `chmod 600 {shlex.quote(str(path))}`",
        )
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"--token-file {path}: not a token of {SHORTEST_TOKEN} characters or more",
            hint=f"make one with `umask 077; openssl rand -hex 32 > {shlex.quote(str(path))}`",
        )
    return token


def choose_safety(address: Address) -> Safety:
    """The rules for an address; refuses one that anybody could reach and read."""
    token = None if address.token_file is None else read_token(address.token_file)
    https = address.certificate is not None
    if https != (address.key is not None):
        raise UsageError("a certificate and its key go together",
                         hint="give --tls-cert and --tls-key")  # fmt: skip
    if address.client_ca is not None and not https:
        raise UsageError("--client-ca needs TLS", hint="give --tls-cert and --tls-key as well")
    if not is_loopback(address.host) and token is None and address.client_ca is None:
        raise UsageError(
            f"--host {address.host}: anybody who reaches it could read the recording",
            hint="give --token-file, or --client-ca with --tls-cert and --tls-key; or keep to "
            "127.0.0.1 and use `ssh -L`",
        )
    return Safety(LOOPBACK_NAMES | _names(address.host), token, https)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _names(host: str) -> set[str]:
    """Return the host names that a request may use: the host's own, and this machine's."""
    plain = host.strip("[]").lower()
    names = {f"[{plain}]" if ":" in plain else plain}
    if plain in ("0.0.0.0", "::"):  # noqa: S104 - recognised, not bound
        name = socket.gethostname().lower()
        names |= {name, socket.getfqdn().lower()}
        for family, *_, where in _addresses(name):
            names.add(f"[{where[0]}]" if family == socket.AF_INET6 else str(where[0]))
    return names


def _addresses(name: str) -> list[tuple[int, int, int, str, tuple[str | int, ...]]]:
    try:
        return list(socket.getaddrinfo(name, None))  # type: ignore[arg-type]
    except OSError:
        return []


def listen(address: Address) -> socket.socket:
    """The socket, bound; says by name what is wrong if it cannot be."""
    host = address.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, address.port))
        found.listen(256)
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else "not a port"
        raise UsageError(
            f"{address.host} port {address.port}: {reason}",
            hint="give another --port (0 takes any free one), or another --host",
        ) from error
    return found


def link_to(address: Address, port: int, *, https: bool) -> str:
    """The page's address, as a person opens it."""
    host = address.host.strip("[]")
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if https else 'http'}://{shown}:{port}/"


def serve(
    path: Path,
    address: Address,
    *,
    ready: Callable[[str], None],
    say: Callable[[str], None],
    show: Callable[[int, int], None] = lambda done, total: None,
    places: Places = Places(),  # noqa: B008 frozen
) -> None:
    """Serve one recording until a signal ends it; `ready` is told the link."""
    share_heap()
    safety = choose_safety(address)
    recording = ServedArchive(path)
    _check(recording, say)
    server = Server(recording, say, places)
    config = uvicorn.Config(
        make_app(server, safety),
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=MOST_HEADER,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        ssl_ca_certs=None if address.client_ca is None else str(address.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if address.client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificate cannot be used: {error}",
            hint="see --tls-cert, --tls-key, --client-ca",
        ) from error
    with listen(address) as bound:
        warming = threading.Thread(target=_warm, args=(server, show), name="warming", daemon=True)
        warming.start()
        ready(link_to(address, bound.getsockname()[1], https=safety.https))
        try:
            _Quiet(config).run(sockets=[bound])
        finally:
            server.stopping.set()
            warming.join(5)


def _check(recording: ServedArchive, say: Callable[[str], None]) -> None:
    """Refuse at once what cannot be served; an empty archive is waited for."""
    if not recording.path.exists():
        path = recording.path.absolute()
        raise ArchiveError(
            recording.path,
            "there is no recording",
            hint=f"give another --archive, or run `{shlex.join(_recorded_into(path))}` first",
        )
    try:
        recording.snapshot()
    except NothingRecorded as error:
        say(f"{error}: waiting for a recorder")


def _recorded_into(path: Path) -> list[str]:
    return ["nodescope", "record", "--archive", str(path)]


class _Quiet(uvicorn.Server):
    """Ends by a signal as by anything else: uvicorn would raise it again when it is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {each: signal.signal(each, self.handle_exit) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _warm(server: Server, show: Callable[[int, int], None]) -> None:
    """Fill the shelf; a recording that vanished is told to whoever asks for it."""
    try:
        snapshot = server.recording.snapshot()
        server.shelf.belongs_to(snapshot.identity)
        server.shelf.fill(snapshot.segments, server.stopping, show)
    except ArchiveError:
        return

"""Who may ask: checked before anything else looks at a request.

- The Host header must name us: a page of another site whose name was made to resolve to
  this machine (DNS rebinding) sends its own.
- A request that another site's page made is refused; following a link to the page is not.
- Where there is a token, it comes as `Authorization: Bearer`, or once as `?token=` of the
  page's link, which is exchanged for a cookie that no script can read.
- Every answer says what the page may do: load from us alone, be framed by nobody.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.web.answers.replies import json_reply

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
COOKIE = "nodescope"


@dataclass(frozen=True)
class Safety:
    """The rules of one server."""

    names: frozenset[str] = LOOPBACK_NAMES  # that a request may call us
    token: str | None = None
    https: bool = False
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def session(self) -> str:
        """Return the cookie's value: worth nothing once this server has ended."""
        assert self.token is not None
        return hmac.new(self._secret, self.token.encode(), hashlib.sha256).hexdigest()

    def knows(self, token: str) -> bool:
        """Compare with the token, in a time that does not depend on it."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    message: str
    hint: str


class Guard:
    """Refuses, or passes on and adds headers to what comes back."""

    def __init__(self, app: ASGIApp, safety: Safety) -> None:
        self._app = app
        self._safety = safety

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        response = self._refuse_or_admit(scope)
        if response is None:
            await self._app(scope, receive, guarded)
        else:
            await response(scope, receive, guarded)

    def _refuse_or_admit(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        refusal = check_site(scope["path"], headers, self._safety)
        if refusal is None and self._safety.token is not None:
            given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            if scope["path"] == "/" and self._safety.knows(given.get("token", "")):
                return _admit(given, self._safety)
            refusal = check_token(headers, self._safety)
        if refusal is None:
            return None
        reply = json_reply({"error": refusal.message, "hint": refusal.hint})
        extra = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
        extra["Cache-Control"] = "no-store"
        return Response(reply.body, refusal.status, extra, reply.media_type)


def check_site(path: str, headers: Headers, safety: Safety) -> Refusal | None:
    """Refuse a request that does not name us, or comes from another site's page."""
    host = headers.get("host", "")
    if _name_of(host) not in safety.names:
        hint = f"use one of {', '.join(sorted(safety.names))}"
        return Refusal(403, f"this server is not called {host[:200]!r}", hint)
    hint = "open the page itself"
    origin = headers.get("origin")
    if origin is not None and origin != f"{'https' if safety.https else 'http'}://{host}":
        return Refusal(403, f"asked by a page of {origin[:200]!r}", hint)
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin"):
        link = headers.get("sec-fetch-mode") == "navigate" and not path.startswith("/api/")
        if not link or headers.get("sec-fetch-dest", "document") != "document":
            return Refusal(403, "asked by a page of another site", hint)
    return None


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    name = host.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def check_token(headers: Headers, safety: Safety) -> Refusal | None:
    """Refuse a request without the token, or the cookie that was given for it."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and safety.knows(token.strip()):
        return None
    if hmac.compare_digest(_cookie(headers).encode(), safety.session.encode()):
        return None
    return Refusal(
        401,
        "a token is needed",
        "open the link with ?token=…, or send `Authorization: Bearer …`; the token is in the "
        "file given with --token-file",
    )


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _admit(given: dict[str, str], safety: Safety) -> Response:
    """Give the cookie, and go on to the link without the token.

    Not by a redirect: a strict cookie would not be sent with one that another site's
    link began.
    """
    rest = urlencode({name: value for name, value in given.items() if name != "token"})
    target = urlsplit(f"/?{rest}" if rest else "/").geturl().replace("&", "&amp;")
    body = (
        '<!doctype html><html lang="en"><title>Nodescope</title>'
        f'<meta http-equiv="refresh" content="0; url={target}">'
        f'<p><a href="{target}">Go on</a>'
    )
    response = Response(body, 200, {"Cache-Control": "no-store"}, "text/html")
    response.set_cookie(
        COOKIE, safety.session, httponly=True, samesite="strict", secure=safety.https
    )
    return response

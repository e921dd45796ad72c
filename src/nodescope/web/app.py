"""The application: requests to questions, questions to threads, replies to bytes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as HttpRoute

import nodescope
from nodescope.errors import ArchiveError, NodescopeError, UsageError
from nodescope.sources.places import Places
from nodescope.web.answers.replies import json_reply
from nodescope.web.cache import Cache
from nodescope.web.declaration import Route
from nodescope.web.downloads import FileReply
from nodescope.web.follow import follow
from nodescope.web.openapi import describe
from nodescope.web.question import Abandoned, Question, Reply, Values
from nodescope.web.routes import ROUTES
from nodescope.web.security import Guard, Safety
from nodescope.web.server_sent_events import EVENT_STREAM, stream_task
from nodescope.web.shelf import Shelf
from nodescope.web.snapshot import ServedArchive, Snapshot
from nodescope.web.static_files import page_routes
from nodescope.web.work import PendingAnswer, TooBusy, Work

KEPT_BYTES = 24 << 20
_CACHE_CONTROL = "private, no-cache"  # kept, and asked for again by its ETag
LONG = 8  # segments: more of samples take seconds
CLIENT_LEFT = 499  # as nginx says; nobody reads it


@dataclass
class Server:
    """The objects that the endpoints share."""

    recording: ServedArchive
    say: Callable[[str], None] = lambda line: None
    places: Places = field(default_factory=Places)
    shelf: Shelf = field(default_factory=Shelf)
    work: Work = field(default_factory=Work)
    stopping: threading.Event = field(default_factory=threading.Event)
    kept: Cache[Reply] = field(
        default_factory=lambda: Cache(KEPT_BYTES, lambda reply: len(reply.body) + 500)
    )

    # -- one request ------------------------------------------------------------

    async def answer(self, route: Route, request: Request) -> Response:
        """Answer a request by its route."""
        loop = asyncio.get_running_loop()
        values = route.read(request.query_params.multi_items())
        snapshot, version, touched = await loop.run_in_executor(
            self.work.looking, self._look, values
        )
        etag = _etag(route, values, version)
        slow = route.slow or _is_heavy(values) or (route.by_samples and touched > LONG)
        if route.cached and request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=_headers(etag))
        if EVENT_STREAM in request.headers.get("accept", "") and _streams(route):
            return StreamingResponse(
                stream_task(self.work, self._begin(route, values, snapshot, etag, slow=slow)),
                media_type=EVENT_STREAM,
                headers={"Cache-Control": "no-store"},
            )
        kept = self.kept.find(etag) if route.cached else None
        if kept is None:
            kept = await self._wait(request, self._begin(route, values, snapshot, etag, slow=slow))
        lasting = route.cached and kept.whole
        headers = _headers(etag) if lasting else {"Cache-Control": "no-store"}
        if kept.filename is not None:
            headers["Content-Disposition"] = f'attachment; filename="{kept.filename}"'
        if kept.path is not None:
            return FileReply(kept.path, kept.media_type, headers)
        return Response(kept.body, media_type=kept.media_type, headers=headers)

    def _look(self, values: Values) -> tuple[Snapshot, str, int]:
        """The recording, what tells versions of this answer apart, how many segments it touches."""
        snapshot = self.recording.snapshot()
        self.shelf.belongs_to(snapshot.identity)
        if "from_ms" not in values:
            return snapshot, f"{snapshot.revision} {snapshot.live}", 1
        asked = Question(values, snapshot, self.shelf).asked
        return snapshot, snapshot.revision_of(asked), len(snapshot.recording.overlapping(asked))

    def _begin(
        self, route: Route, values: Values, snapshot: Snapshot, etag: str, *, slow: bool
    ) -> PendingAnswer:
        def job(task: PendingAnswer) -> Reply:
            reply = self._compute(
                route, Question(values, snapshot, self.shelf, task.check, task.show, self.places)
            )
            if route.cached and reply.path is None and reply.whole:
                self.kept.put(etag, reply)
            return reply

        return self.work.begin(etag, job, slow=slow)

    def _compute(self, route: Route, question: Question) -> Reply:
        try:
            return route.answer(question)
        except ArchiveError:
            # Retention may have taken a segment meanwhile: once more, as it is now.
            self.recording.forget()
            question.check()
            again = Question(
                question.values,
                self.recording.snapshot(),
                self.shelf,
                question.check,
                question.show,
                self.places,
            )
            return route.answer(again)

    async def _wait(self, request: Request, task: PendingAnswer) -> Reply:
        """Wait for the reply, or until the one who asked is gone."""
        gone = asyncio.ensure_future(_disconnected(request))
        waited: set[asyncio.Future[Any]] = {gone, task.future}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not task.future.done():
                raise Abandoned
            return task.future.result()
        finally:
            gone.cancel()
            self.work.leave(task)

    # -- errors -----------------------------------------------------------------

    def complain(self, request: Request, error: Exception) -> Response:
        """An error as JSON; what is ours to know is also said in the log, in one line."""
        hint = error.hint if isinstance(error, NodescopeError) else None
        status = 500
        headers = {"Cache-Control": "no-store"}
        if isinstance(error, HTTPException):
            status, headers = error.status_code, {**headers, **(error.headers or {})}
            message = error.detail
        elif isinstance(error, Abandoned):
            return Response(status_code=CLIENT_LEFT)
        elif isinstance(error, UsageError):
            status, message = 400, str(error)
        elif isinstance(error, TooBusy | ArchiveError):
            status, message = 503, str(error)
            headers["Retry-After"] = "2"
        elif isinstance(error, NodescopeError):
            message = str(error)
        else:
            kind = type(error).__name__
            message = f"a defect in Nodescope {nodescope.__version__}: {kind}: {error}"
            hint = "please report it, with the server's log"
        if status >= 500:
            self.say(f"{request.method} {request.url.path}: {message}")
        reply = json_reply({"error": message[:2000], "hint": hint})
        return Response(reply.body, status, headers, reply.media_type)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _is_heavy(values: Values) -> bool:
    """Paths by core or process are as many times more: seconds, and hundreds of megabytes."""
    return values.get("merge") in ("cpu", "pid")


def _streams(route: Route) -> bool:
    return any(kind.media_type == EVENT_STREAM for kind in route.kinds)


def _etag(route: Route, values: Values, version: str) -> str:
    told = json.dumps(
        [nodescope.__version__, route.path, version, sorted(values.items())], default=_said
    )
    return f'"{hashlib.blake2b(told.encode(), digest_size=12).hexdigest()}"'


def _said(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _headers(etag: str) -> dict[str, str]:
    return {"Cache-Control": _CACHE_CONTROL, "ETag": etag}


def make_app(server: Server, safety: Safety) -> Starlette:
    """The application over one recording."""

    def endpoint(route: Route) -> HttpRoute:
        async def answer(request: Request) -> Response:
            try:
                return await server.answer(route, request)
            except Exception as error:  # noqa: BLE001 - the boundary: every error is answered
                return server.complain(request, error)

        return HttpRoute(route.path, answer, methods=["GET"])

    async def openapi(request: Request) -> Response:
        del request
        reply = json_reply(describe(ROUTES))
        return Response(reply.body, 200, {"Cache-Control": "no-cache"}, reply.media_type)

    async def following(request: Request) -> Response:
        del request
        return StreamingResponse(
            follow(server.recording, server.work, server.stopping),
            media_type=EVENT_STREAM,
            headers={"Cache-Control": "no-store"},
        )

    async def complain(request: Request, error: Exception) -> Response:
        return server.complain(request, error)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        yield
        server.stopping.set()
        server.work.close()

    app = Starlette(
        routes=[
            *(endpoint(route) for route in ROUTES),
            HttpRoute("/api/follow", following, methods=["GET"]),
            HttpRoute("/api/openapi.json", openapi, methods=["GET"]),
            *page_routes(),
        ],
        exception_handlers={HTTPException: complain, Exception: complain},
        lifespan=lifespan,
    )
    app.add_middleware(Guard, safety=safety)
    return app

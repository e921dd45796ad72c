"""The static files of the page, as they were built into the package."""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

PAGE = Path(__file__).parent / "page"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,120}")
_NOT_BUILT = (
    "<!doctype html><html lang=en><title>Nodescope</title><h1>The page is not built</h1>"
    "<p>Run <code>make page</code> in the source tree; the API is at "
    "<a href=api/openapi.json>api/openapi.json</a>."
)


def is_built(folder: Path = PAGE) -> bool:
    """Return whether the page was built into the package: a checkout comes without it."""
    return (folder / "index.html").is_file()


def page_routes(folder: Path = PAGE) -> list[Route]:
    """`/` and `/assets/*`: only names that were there when asked for are opened."""

    async def index(request: Request) -> Response:
        del request
        if not is_built(folder):
            return Response(_NOT_BUILT, 200, {"Cache-Control": "no-store"}, "text/html")
        return FileResponse(folder / "index.html", headers={"Cache-Control": "no-cache"})

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        path = folder / "assets" / name
        if not _NAME.fullmatch(name) or name.startswith(".") or not path.is_file():
            raise HTTPException(404, "no such file")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return FileResponse(path, headers=headers, media_type=kind)

    return [
        Route("/", index, methods=["GET"]),
        Route("/assets/{name}", asset, methods=["GET"]),
    ]

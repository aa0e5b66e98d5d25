"""GET /admin: the page to look at. It shows what the endpoints answer, so its own files hold nothing secret."""

import mimetypes
from functools import partial
from importlib import resources
from typing import Final

from delayqueue.web.http import Handler, HttpRequest, HttpResponse

PATH: Final = "/admin"
# Only our own files, no inline code, in nobody's frame.
POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # a new server has a new page
}


def pages() -> dict[str, dict[str, Handler]]:
    """What answers for the page and its files, by path and method. They are read once."""
    folder = resources.files("delayqueue.web").joinpath("static", "admin")
    found: dict[str, Handler] = {"/": _from_root, f"{PATH}/": _to_page}
    for name, content in _files(folder):
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        found[PATH if name == "index.html" else f"{PATH}/{name}"] = partial(_answer, content, kind)
    return {path: {"GET": handler} for path, handler in found.items()}


def _files(folder: resources.abc.Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = prefix + entry.name
        found += _files(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found


async def _answer(content: bytes, kind: str, _: HttpRequest) -> HttpResponse:
    return HttpResponse(content, HEADERS | {"Content-Type": kind})


async def _from_root(_: HttpRequest) -> HttpResponse:
    """Who types in the server's address means the page."""
    return HttpResponse(headers={"Location": "admin"}, status=302)


async def _to_page(_: HttpRequest) -> HttpResponse:
    """The page's links are relative, so that it works behind a proxy that adds a path."""
    return HttpResponse(headers={"Location": "../admin"}, status=308)

"""GET /admin: the admin page. It shows what the endpoints answer, so its own files hold nothing secret."""

import mimetypes
from hashlib import sha256
from importlib import resources
from typing import Final

from delayqueue.web.endpoint import OPEN, Endpoint
from delayqueue.web.http import HttpRequest, HttpResponse

PATH: Final = "/admin"
# Only our own files, no inline code, no frames.
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
    "Cache-Control": "no-cache",  # ask whether a new server has another file
}


def pages() -> list[Endpoint]:
    """The page and its files, read once."""
    folder = resources.files("delayqueue.web").joinpath("static", "admin")
    found = [
        # the bare address of the server leads to the page
        _page("/", HttpResponse(headers={"Location": "admin"}, status=302)),
        # the page's links are relative, so that it works behind a proxy that adds a path
        _page(f"{PATH}/", HttpResponse(headers={"Location": "../admin"}, status=308)),
    ]
    for name, content in _files(folder):
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        path = PATH if name == "index.html" else f"{PATH}/{name}"
        tag = f'"{sha256(content).hexdigest()[:32]}"'
        found.append(
            _page(path, HttpResponse(content, HEADERS | {"Content-Type": kind, "ETag": tag}))
        )
    return found


def _page(path: str, response: HttpResponse) -> Endpoint:
    tag = response.headers.get("ETag")
    unchanged = HttpResponse(headers=response.headers, status=304)

    async def answer(_api: object, _asked: object, request: HttpRequest) -> HttpResponse:
        known = request.headers.get("if-none-match", "")  # perhaps several, or weak: W/"..."
        return unchanged if tag and (tag in known or known == "*") else response

    return Endpoint(
        name="admin",
        path=path,
        methods=("GET",),
        roles=OPEN,
        summary="part of the page",
        run=answer,
    )


def _files(folder: resources.abc.Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = prefix + entry.name
        found += _files(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found

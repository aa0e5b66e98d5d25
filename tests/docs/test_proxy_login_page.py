"""docs/howto/proxy-login.md: its settings fit together, and its nginx logs users in."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from aiohttp import web

from delayqueue.config.loading import load
from delayqueue.web.proxy_login import ProxyLogins, proxy_warnings
from tests.api_client import FORBIDDEN, UNAUTHORIZED, Api, open_api
from tests.processes import LOOPBACK, Process, Processes, StoreServer, free_port

from .markdown import some_blocks

PAGE: Final = "docs/howto/proxy-login.md"
SETTINGS: Final = [block.text for block in some_blocks(PAGE, "ini")]
[NGINX] = [block.text for block in some_blocks(PAGE, "nginx")]
TOKEN: Final = "token-0123456789"
ALICE: Final = {"Cookie": "session=alice"}
ELSEWHERE: Final = "127.0.0.2"


@pytest.mark.parametrize("text", SETTINGS)
def test_its_settings_fit_together(text: str, tmp_path: Path) -> None:
    (tmp_path / "dq.conf").write_text(text, encoding="utf-8")
    config = load(tmp_path / "dq.conf", {})
    assert ProxyLogins.of(config)
    assert [*proxy_warnings(config)] == []


class Nginx(Process):
    """nginx with the page's server block, without a daemon and without root."""

    def __init__(self, home: Path, port: int, block: str) -> None:
        kept = "\n".join(
            f"{name}_temp_path {home}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file = home / "nginx.conf"
        file.write_text(
            f"daemon off; master_process off; pid {home}/pid;\nevents {{}}\n"
            f"http {{ access_log off;\n{kept}\n{block} }}\n",
            encoding="utf-8",
        )
        super().__init__("nginx", home, ["nginx", "-e", "stderr", "-c", str(file)], port=port)


@asynccontextmanager
async def login_program(port: int) -> AsyncIterator[None]:
    """What nginx asks, in place of Authelia: it knows whose a cookie is."""

    async def check(request: web.Request) -> web.Response:
        if request.headers.get("Cookie") != ALICE["Cookie"]:
            return web.Response(status=HTTPStatus.UNAUTHORIZED)
        groups = "staff,delay-queue-admins"
        return web.Response(headers={"Remote-User": "alice", "Remote-Groups": groups})

    app = web.Application()
    app.router.add_route("*", "/api/authz/auth-request", check)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, port).start()
    yield
    await runner.cleanup()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
async def test_its_nginx_logs_users_in(processes: Processes, redis_server: StoreServer) -> None:
    tokens = f"language = en\nauth_tokens = produce:{TOKEN}\n"
    server = processes.configured(tokens + SETTINGS[0], redis_server)
    server.start()
    port, asked = free_port(), free_port()
    places = {"listen 80": f"listen {port}", "127.0.0.1:9277": server.address}
    block = NGINX
    for place, here in (places | {"127.0.0.1:9091": f"{LOOPBACK}:{asked}"}).items():
        assert place in block
        block = block.replace(place, here)
    nginx = processes.started(Nginx(processes.home("nginx"), port, block))
    url = f"http://{LOOPBACK}:{port}"
    forged = {"Remote-User": "root", "remote-groups": "delay-queue-admins"}
    async with login_program(asked), open_api(url) as nobody, open_api(url, headers=ALICE) as alice:
        async with nobody.session.post(f"{url}/topics", allow_redirects=False) as answer:
            assert answer.status == HTTPStatus.FOUND
            assert answer.headers["Location"] == f"https://auth.example.com/?rd={url}/topics"
        for headers in ({}, forged):
            told = (await alice.call("/whoami", {}, headers)).ok()
            assert (told["user"], told["roles"]) == ("alice", ["admin", "view"])
        own, other = {"Origin": url}, {"Origin": "http://evil.example"}
        (await alice.call("/pause", {"topic": "mail"}, own)).ok()
        (await alice.call("/pause", {"topic": "mail"}, other)).refused(FORBIDDEN, status=403)
        job = {"topic": "mail", "id": "a", "ttr": 60, "delay": 60}
        token = {"Authorization": f"Bearer {TOKEN}"}
        (await nobody.call("/push", job, token | forged)).ok()
        (await nobody.call("/push", job, forged)).refused(UNAUTHORIZED, status=401)
        page = await alice.session.get(f"{url}/admin")
        assert page.status == HTTPStatus.OK
    connector = aiohttp.TCPConnector(local_addr=(ELSEWHERE, 0))
    async with aiohttp.ClientSession(connector=connector, headers=forged) as session:
        direct = await Api(session, server.url).call("/topics", {})
        assert "is not in proxy_allow" in direct.refused(FORBIDDEN, status=403)
    nginx.close()
    server.close()

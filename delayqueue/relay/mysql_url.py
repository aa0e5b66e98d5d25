"""The URL of a MySQL or MariaDB, with the options of its own clients: each is obeyed, or refused."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

CHARSET: Final = "utf8mb4"
PORT: Final = 3306
FORM: Final = (
    "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F %23 %3F %40 %5B for / # ? @ [, "
    "and so for other signs"
)
CONNECT_S: Final = 10
MOST_CONNECT_S: Final = 3600
# from the weakest to the strongest, as `mysql --ssl-mode` has them
DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY = MODES = (
    "DISABLED",
    "PREFERRED",
    "REQUIRED",
    "VERIFY_CA",
    "VERIFY_IDENTITY",
)
OPTIONS: Final = (
    *("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"),
    *("charset", "connect_timeout", "unix_socket"),
)


@dataclass(frozen=True, slots=True)
class MySQLUrl:
    """The URL, taken apart. `ca`, `cert` and `key` are paths, "" = none."""

    host: str
    port: int
    user: str
    password: bytes = field(repr=False)
    database: str
    unix_socket: str
    ssl_mode: str
    ca: str
    cert: str
    key: str
    connect_timeout_s: int

    @classmethod
    def read(cls, url: str) -> MySQLUrl:
        """Take a URL apart. Raises ValueError for what cannot be obeyed."""
        try:
            parts = urlsplit(url)
            port = parts.port or PORT
        except ValueError:  # whose words may have a part of the password
            raise ValueError(FORM) from None
        if parts.fragment:
            raise ValueError(FORM)
        given = _options(parts.query)
        if (charset := given.get("charset", CHARSET).lower()) != CHARSET:
            raise ValueError(f"charset={charset}: the relay speaks {CHARSET}")
        timeout = given.get("connect_timeout", str(CONNECT_S))
        if not (timeout.isdecimal() and 0 < int(timeout) <= MOST_CONNECT_S):
            raise ValueError(f"connect_timeout={timeout}: must be 1 to {MOST_CONNECT_S} seconds")
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=port,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or "").encode(),
            database=unquote(parts.path[1:]),
            unix_socket=given.get("unix_socket", ""),
            ssl_mode=_mode(given),
            ca=given.get("ssl_ca", ""),
            cert=given.get("ssl_cert", ""),
            key=given.get("ssl_key", ""),
            connect_timeout_s=int(timeout),
        )

    def arguments(self) -> dict[str, Any]:
        """How PyMySQL is called. Raises ValueError if a file of the URL is not what it must be."""
        tls: dict[str, Any] = {}  # PREFERRED, as is PyMySQL's default
        if self.ssl_mode == DISABLED:
            tls = {"ssl_disabled": True}
        elif self.ssl_mode != PREFERRED:
            tls = {"ssl": self._context()}
        return tls | {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "unix_socket": self.unix_socket or None,
            "charset": CHARSET,
            "connect_timeout": self.connect_timeout_s,
        }

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.ssl_mode == VERIFY_IDENTITY
        if self.ssl_mode == REQUIRED:
            context.verify_mode = ssl.CERT_NONE
        try:
            if self.ca:
                context.load_verify_locations(self.ca)
        except OSError as error:
            raise ValueError(f"ssl_ca={self.ca}: {error.strerror or error}") from error
        try:
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except OSError as error:
            files = " and ".join(filter(None, (self.cert, self.key)))
            raise ValueError(f"ssl_cert, ssl_key: {files}: {error.strerror or error}") from error
        return context


def _mode(given: dict[str, str]) -> str:
    """How far the server is trusted. Raises ValueError if another option goes further, or not as far."""
    usual = VERIFY_CA if "ssl_ca" in given else REQUIRED if "ssl_cert" in given else PREFERRED
    mode = given.get("ssl_mode", usual).upper()
    verifies = mode in {VERIFY_CA, VERIFY_IDENTITY}
    if mode not in MODES:
        raise ValueError(f"ssl_mode={mode}: must be one of {', '.join(MODES)}")
    if verifies and "ssl_ca" not in given:
        raise ValueError(f"ssl_mode={mode}: needs ssl_ca, the file of the authority to trust")
    if "ssl_ca" in given and not verifies:
        raise ValueError(f"ssl_ca: ssl_mode={mode} verifies nothing, {VERIFY_IDENTITY} does")
    if given.keys() & {"ssl_cert", "ssl_key"} and mode in {DISABLED, PREFERRED}:
        raise ValueError(f"ssl_cert, ssl_key: go with ssl_mode={REQUIRED} or stronger, not {mode}")
    if "ssl_key" in given and "ssl_cert" not in given:
        raise ValueError("ssl_key: goes with ssl_cert")
    return mode


def _options(query: str) -> dict[str, str]:
    """The options by their names, in which `-` is `_`, as in MySQL."""
    found: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        option = unquote(name).replace("-", "_").lower()
        if option not in OPTIONS:
            raise ValueError(
                f"{option}: no option of a MySQL URL here; there are {', '.join(OPTIONS)}"
            )
        if option in found or not (equals and value):
            raise ValueError(f"{option}: must be there once, with a value")
        found[option] = unquote(value)
    return found

"""TLS of the server: its certificate, and the authority that client certificates must come from."""

import logging
import os
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple, Self

from delayqueue.config.config import Config
from delayqueue.config.files import check_readable, read_limited
from delayqueue.config.startup import StartupError

log = logging.getLogger(__name__)

NO_CHECK_TIME: Final = 0x200000  # X509_V_FLAG_NO_CHECK_TIME (openssl/x509_vfy.h)


class Handshake(ssl.SSLObject):
    """A server's side of a connection. A client with a refused certificate gets an alert, and the log a line."""

    _refusal: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Go on with the handshake. Raises ssl.SSLError."""
        if self._refusal:
            raise self._refusal
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if not _is_about_certificate(error):
                raise
            self._refusal = error
            why = getattr(error, "verify_message", "") or "it sent no certificate"
            log.warning("refused a TLS client without a certificate from tls_client_ca: %s", why)
            # else the event loop would drop the alert, which it has yet to send; then the client closes
            raise ssl.SSLWantReadError from error


def _is_about_certificate(error: ssl.SSLError) -> bool:
    return (
        isinstance(error, ssl.SSLCertVerificationError)
        or error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    )


class Pem(NamedTuple):
    """A PEM file, and what it held when it was read."""

    file: Path
    content: bytes

    @classmethod
    def read(cls, file: Path, key: str) -> Self:
        """Read it. Raises StartupError, with the `key` of the setting that names the file, if that is impossible."""
        try:
            check_readable(file)
            return cls(file, read_limited(file))
        except OSError as error:
            raise _unusable(error, file, key=key) from None


class Certificate(NamedTuple):
    """What the settings say of TLS, read: the certificate with its chain, its key, the authority of clients.

    It can be sent to other processes, and no file is read again to use it.
    """

    cert: Pem
    key: Pem
    client_ca: Pem | None

    @classmethod
    def of(cls, config: Config) -> Self | None:
        """Read and check it, None = no TLS. Raises StartupError if a file is missing or invalid.

        Logs a warning if clients refuse it now: renewing it does not need a restart.
        """
        if config.tls_cert is None:
            if config.tls_key or config.tls_client_ca:
                raise StartupError(
                    "tls_key and tls_client_ca need tls_cert; set it, or unset them",
                    key="tls_key" if config.tls_key else "tls_client_ca",
                )
            return None
        found = cls(
            Pem.read(config.tls_cert, "tls_cert"),
            Pem.read(config.tls_key or config.tls_cert, "tls_cert"),
            Pem.read(config.tls_client_ca, "tls_client_ca") if config.tls_client_ca else None,
        )
        context = found.context()
        with suppress(ssl.SSLError), _file(found.cert.content) as cert:  # an odd one has no warning
            begin, end = _dates(context, cert)
            if not ssl.cert_time_to_seconds(begin) <= time.time() < ssl.cert_time_to_seconds(end):
                log.warning(
                    "tls_cert = %s: clients refuse it: it is valid from %s to %s",
                    found.cert.file,
                    begin,
                    end,
                )
        return found

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it was read from."""
        return tuple(pem.file for pem in self if pem is not None)

    def context(self) -> ssl.SSLContext:
        """A context for connections of clients. Raises StartupError if something does not fit."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 or newer
        context.sslobject_class = Handshake
        try:
            with _file(self.cert.content) as cert, _file(self.key.content) as key:
                context.load_cert_chain(cert, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise _unusable(error, self.cert.file, self.key.file, key="tls_cert") from None
        if self.client_ca is None:
            return context
        try:
            with _file(self.client_ca.content) as client_ca:
                context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise _unusable(error, self.client_ca.file, key="tls_client_ca") from None
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class Tls(ssl.SSLContext):
    """The server's side of TLS, for all listeners: each connection gets the context in force, from its beginning.

    So nobody resumes a session of a former one, whose authority may no longer be trusted.
    """

    _in_force: ssl.SSLContext

    @classmethod
    def of(cls, certificate: Certificate) -> Self:
        """TLS with this certificate."""
        made = cls(ssl.PROTOCOL_TLS_SERVER)
        made.use(certificate)
        return made

    def use(self, certificate: Certificate) -> None:
        """Use another certificate, and authority, for new connections."""
        self._in_force = certificate.context()

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """What an event loop calls for a connection; the arguments are those of ssl.SSLContext."""
        return self._in_force.wrap_bio(*args, **kwargs)


def _dates(server: ssl.SSLContext, cert: str) -> tuple[str, str]:
    """When a server's certificate, in the file `cert`, begins and ends to be valid. Raises ssl.SSLError.

    The module ssl tells it of a certificate that a client has verified: this client trusts it, at any time.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(cert)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = client.wrap_bio(to_client, to_server)
    for each in (end, server.wrap_bio(to_server, to_client, server_side=True)):
        with suppress(ssl.SSLWantReadError):
            each.do_handshake()
    end.do_handshake()
    found: Any = end.getpeercert()
    return found["notBefore"], found["notAfter"]


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """The path of a file with this content while the block runs: OpenSSL takes a key only from a file.

    No folder has it, and on Linux no disk: nobody else can read it, and nothing is left if this process is killed.
    """
    if sys.platform == "linux":
        file, folder = os.fdopen(os.memfd_create("delay-queue"), "w+b"), "/proc/self/fd"
    else:
        file, folder = TemporaryFile(), "/dev/fd"  # noqa: SIM115  # it is closed below
    with file:
        file.write(content)
        file.seek(0)  # writes what is buffered; on macOS, whoever opens it goes on from here
        yield f"{folder}/{file.fileno()}"


def _no_password() -> str:
    raise ValueError("the key has a password; use one without")


def _unusable(error: Exception, *files: Path, key: str) -> StartupError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    names = ", ".join(map(str, files))
    return StartupError(f"{key} = {names}: {reason}; name PEM files that belong together", key=key)

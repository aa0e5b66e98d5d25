"""TLS of the server: its certificate, and the authority that client certificates must come from."""

import logging
import ssl
from pathlib import Path

from delayqueue.config.config import Config
from delayqueue.config.files import check_readable
from delayqueue.config.startup import StartupError

log = logging.getLogger(__name__)


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


class Tls:
    """The server's side of TLS. `context` is for new connections; what it uses can be replaced as a whole."""

    def __init__(self, cert: Path, key: Path, client_ca: Path | None) -> None:
        """Raises StartupError if a file is missing or invalid."""
        self.files = (cert, key, *((client_ca,) if client_ca else ()))
        self.context = self._in_force = _read(cert, key, client_ca)
        # called at each handshake, also of clients that name no server
        self.context.sni_callback = self._turn

    @classmethod
    def of(cls, config: Config) -> "Tls | None":
        """TLS as configured, None = no TLS. Raises StartupError if a file is missing or invalid."""
        if config.tls_cert is None:
            if config.tls_key or config.tls_client_ca:
                raise StartupError(
                    "tls_key and tls_client_ca need tls_cert; set it, or unset them", key="tls_cert"
                )
            return None
        return cls(config.tls_cert, config.tls_key or config.tls_cert, config.tls_client_ca)

    def use(self, other: "Tls") -> None:
        """Use the other's certificate and authority for new connections.

        Whether clients need a certificate stays as it is.
        """
        self.files, self._in_force = other.files, other.context

    def _turn(self, connection: ssl.SSLObject, _name: str | None, asked: ssl.SSLContext) -> None:
        if asked is not self._in_force:
            connection.context = self._in_force


def _read(cert: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 or newer
    context.sslobject_class = Handshake
    try:
        check_readable(cert)
        check_readable(key)
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise _unusable(error, cert, key, key="tls_cert") from None
    if client_ca is None:
        return context
    try:
        check_readable(client_ca)
        context.load_verify_locations(client_ca)
    except (OSError, ValueError) as error:
        raise _unusable(error, client_ca, key="tls_client_ca") from None
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ValueError("the key has a password; use one without")


def _unusable(error: Exception, *files: Path, key: str) -> StartupError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    names = ", ".join(map(str, files))
    return StartupError(f"{key} = {names}: {reason}; name PEM files that belong together", key=key)

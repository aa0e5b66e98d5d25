"""TLS of the server: its certificate, and the authority that client certificates must come from."""

import ssl
from pathlib import Path

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError


class Tls:
    """The server's side of TLS. `context` is for new connections; `reload` renews its certificate."""

    def __init__(self, cert: Path, key: Path, client_ca: Path | None) -> None:
        self.files = (cert, key, *((client_ca,) if client_ca else ()))
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self.context = self._read()

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

    def reload(self) -> None:
        """Use the files' present contents for new connections. Raises StartupError if they are invalid."""
        self._read()  # a certificate that does not fit its key must not get into the context in use
        self._load(self.context)

    def configure(self, config: Config) -> None:
        """Use this config's certificate for new connections.

        Raises StartupError if it is invalid; then nothing changes. The authority stays: a context never forgets one.
        """
        if (other := Tls.of(config)) is not None:
            self.files, self._cert, self._key = other.files, other._cert, other._key
            self._load(self.context)

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 or newer
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._cert, self._key, password=_no_password)
        except (OSError, ValueError) as error:
            raise _unusable(error, self._cert, self._key, key="tls_cert") from None
        if self._client_ca is None:
            return
        try:
            context.load_verify_locations(self._client_ca)
        except (OSError, ValueError) as error:
            raise _unusable(error, self._client_ca, key="tls_client_ca") from None
        context.verify_mode = ssl.CERT_REQUIRED


def _no_password() -> str:
    raise ValueError("the key has a password; use one without")


def _unusable(error: Exception, *files: Path, key: str) -> StartupError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    names = ", ".join(map(str, files))
    return StartupError(f"{key} = {names}: {reason}; name PEM files that belong together", key=key)

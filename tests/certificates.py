"""Certificates for the tests."""

import ssl
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

SUBJECT: Final = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")


class Pair(NamedTuple):
    """A self-signed certificate, which is its own authority, and its key."""

    cert: Path
    key: Path

    def context(self, client: "Pair | None" = None) -> ssl.SSLContext:
        """A context for clients that trust it."""
        context = ssl.create_default_context(cafile=self.cert)
        if client:
            context.load_cert_chain(client.cert, client.key)
        return context


def make(folder: Path, name: str) -> Pair:
    """A certificate of this machine."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "1", *SUBJECT, "-out", str(pair.cert), "-keyout", str(pair.key)]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    return pair

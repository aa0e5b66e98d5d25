"""The verb `healthy`: whether the server that these settings describe is alive."""

import ssl
from argparse import Namespace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from delayqueue.cli.subcommand import DONE, REFUSED, UNREACHABLE, complain
from delayqueue.config.config import Config

ANSWER_S: Final = 4.0  # less than a health check of Docker or Kubernetes is usually given


def healthy(config: Config, _asked: Namespace) -> int:
    """Ask the server for /healthz."""
    try:
        status = _status(config)
    except (OSError, HTTPException) as error:
        return complain([f"{config.own_url}: {str(error) or type(error).__name__}"], UNREACHABLE)
    return DONE if status in {HTTPStatus.OK, None} else complain([f"HTTP {status}"], REFUSED)


def _status(config: Config) -> int | None:
    """The status of /healthz; None if the server refuses us, as we have no certificate (tls_client_ca)."""
    connection = _connection(config)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    except (ssl.SSLError, ConnectionError) as error:
        if config.tls_client_ca is None or isinstance(error, ConnectionRefusedError):
            raise
        return None
    finally:
        connection.close()


def _connection(config: Config) -> HTTPConnection:
    host, port = config.own_address
    if config.tls_cert is None:
        return HTTPConnection(host, port, timeout=ANSWER_S)
    # its certificate names another host, and whoever can take its place on its own machine can do more than answer
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(host, port, timeout=ANSWER_S, context=context)

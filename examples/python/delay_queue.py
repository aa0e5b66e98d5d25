"""A client in one function, with nothing but Python's standard library. Copy it."""

import json
import os
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

URL = os.environ.get("DELAY_QUEUE", "http://localhost:9277")
TIMEOUT_S = 200  # longer than /pop waits


class QueueError(Exception):
    """`code` is that of docs/api.md, or -1 where no server answered."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def queue(verb: str, **request: object) -> Any:
    """Call an endpoint: queue("finish", id="1001"). Returns the answer's `data`; every error is a QueueError."""
    http_request = Request(f"{URL}/{verb}", json.dumps(request).encode())
    try:
        with urlopen(http_request, timeout=TIMEOUT_S) as response:
            answer = json.load(response)
    except HTTPError as error:
        raise QueueError(-1, f"{error}: {error.read().decode()}") from None
    except (URLError, OSError, ValueError) as error:
        raise QueueError(-1, str(error)) from None
    if answer["code"] != 0:
        raise QueueError(answer["code"], answer["message"])
    return answer["data"]

"""A client in two functions, with nothing but Python's standard library. Copy it."""

import json
import os
import sys
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

NO_ANSWER = -1
UNAVAILABLE = 6  # the store is away
TOO_MANY = 10  # the server is too busy
URL = os.environ.get("DELAYQUEUE_URL", "http://localhost:9277")
TOKEN = os.environ.get("DELAYQUEUE_TOKEN")  # if the server requires one
TIMEOUT_S = 200  # longer than /pop waits
OPENER = build_opener(ProxyHandler({}))  # without a proxy, even if the environment names one


class QueueError(Exception):
    """`code` is one of docs/api.md, or -1 if no server answered."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def queue(verb: str, **request: object) -> Any:
    """Call an endpoint: queue("finish", id="1001"). Returns the answer's `data`; every error is a QueueError."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    http_request = Request(f"{URL}/{verb}", json.dumps(request).encode(), headers)
    try:
        try:
            response = OPENER.open(http_request, timeout=TIMEOUT_S)
        except HTTPError as error:
            response = error  # an answer, too
        with response:
            answer: dict[str, Any] | None = json.load(response)
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise QueueError(NO_ANSWER, str(error)) from None
    if not isinstance(answer, dict) or not isinstance(answer.get("code"), int):
        raise QueueError(NO_ANSWER, "not an answer of the queue")
    if answer["code"] != 0:
        raise QueueError(answer["code"], str(answer.get("message")))
    return answer.get("data")


def insist(verb: str, **request: object) -> Any:
    """The same for workers: call again until it is known whether it was done, as during a restart or a failover."""
    while True:
        try:
            return queue(verb, **request)
        except QueueError as error:
            if error.code not in {NO_ANSWER, UNAVAILABLE, TOO_MANY}:
                raise
            print(error, file=sys.stderr)
        time.sleep(1)

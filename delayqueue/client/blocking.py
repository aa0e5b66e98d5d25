"""The client for programs without asyncio; threads may share one."""

from __future__ import annotations

from delayqueue.client.sender import Sender
from delayqueue.client.verbs import Verbs


class Client(Sender, Verbs):
    """Client for a delay queue server; threads may share one, and forks of the process may go on using it.

    `url` and `token` default to the environment variables DELAYQUEUE_URL and DELAYQUEUE_TOKEN. `timeout` limits the
    wait for an answer, on top of the time that the server may wait for jobs. If the connection breaks or the store is
    unavailable, idempotent calls are retried up to `retries` times; if the server answers "too many requests", every
    call is. Use it in a `with` block, or call close().
    """

"""The limits that all connections of a process share, for tests without a server."""

from delayqueue.metrics import Metrics
from delayqueue.net.connection_limit import ConnectionLimit
from delayqueue.net.limits import ClientLimits
from delayqueue.net.unanswered import Unanswered
from delayqueue.net.unread import Unread


def limits(*, most_unanswered_bytes: int = 128 << 20) -> ClientLimits:
    """The limits of clients as a server has them; needs a running loop."""
    metrics = Metrics()
    return ClientLimits(
        ConnectionLimit(0, metrics), Unanswered(most_unanswered_bytes, metrics), Unread()
    )

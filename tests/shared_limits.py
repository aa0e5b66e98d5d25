"""The limits that all connections of a process share, for tests without a server."""

from delayqueue.metrics import Metrics
from delayqueue.net.connected import Connected
from delayqueue.net.limits import Limits
from delayqueue.net.unanswered import Unanswered
from delayqueue.net.unread import Unread


def limits(*, most_unanswered_bytes: int = 128 << 20) -> Limits:
    """Limits as a server has them; needs a running loop."""
    metrics = Metrics()
    return Limits(Connected(0, metrics), Unanswered(most_unanswered_bytes, metrics), Unread())

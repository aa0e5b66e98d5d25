"""The limits that all connections of a process share."""

from dataclasses import dataclass

from delayqueue.net.connection_limit import ConnectionLimit
from delayqueue.net.unanswered import Unanswered
from delayqueue.net.unread import Unread


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The limits that are shared by all protocols: of connections, of requests and of answers."""

    connections: ConnectionLimit
    unanswered: Unanswered
    unread: Unread

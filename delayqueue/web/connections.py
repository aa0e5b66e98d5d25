"""What is done for a connection as a whole, whatever requests come over it."""

import asyncio

from aiohttp import web


class Connections(web.Server):
    """aiohttp's server."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take the peer's address while it is there: of a connection that was reset nobody knows it any more."""
        super().connection_made(handler, transport)
        _ = handler.peername  # aiohttp keeps what it finds first

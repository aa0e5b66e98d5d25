"""arq's demo: pages are downloaded by coroutines that share a session.

delay-queue worker arq_demo:worker, and beside it: python arq_demo.py http://example.com ...
"""

import asyncio
import sys
from collections.abc import AsyncGenerator

from aiohttp import ClientSession

from delayqueue import Worker
from delayqueue.worker import current_context

worker = Worker()


@worker.lifespan
async def open_session() -> AsyncGenerator[ClientSession, None]:
    async with ClientSession() as session:
        yield session


@worker.task("download")
async def download(url: str) -> int:
    session: ClientSession = current_context()
    async with session.get(url) as answer:
        text = await answer.text()
    print(f"{url}: {text:.80}...")
    return len(text)


async def main(*urls: str) -> None:
    await download.push_many_async((url,) for url in urls)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

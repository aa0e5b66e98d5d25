"""A server repairs its store by itself, and says so in its metrics."""

from redis import Redis

from tests.api_client import open_api
from tests.figures import scrape
from tests.processes import LOOPBACK, Processes, StoreServer


async def test_a_job_that_got_lost_is_delivered_all_the_same(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    server = processes.server(redis_server, redis__db=database)
    async with open_api(server.url) as api:
        (await api.push(topic="mail", id="a")).ok()
        with Redis(host=LOOPBACK, port=redis_server.port, db=database) as redis:
            assert redis.delete("{dq_bucket_1}:dq_queue_mail")
        job = (await api.pop("mail", timeout=20)).ok()
        assert job["id"] == "a"
        assert (await api.finish("a", receipt=job["receipt"])).code == 0
        assert (await scrape(api)).sum("delayqueue_repairs_total", repair="unplaced") == 1

"""What docs/howto/outbox.md shows, run on both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from delayqueue.outbox import TABLE
from tests.docs.markdown import blocks, read
from tests.relay.conftest import Outbox, unchecked

PAGE = "docs/howto/outbox.md"


@pytest.fixture
def shop(outbox: Outbox) -> Iterator[Any]:
    """A connection to a shop's database, with the outbox of the page."""
    outbox.table = TABLE
    outbox.run("--init")
    connection = outbox.database.connect()
    connection.cursor().execute("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(10))")
    connection.commit()
    yield connection
    for table in (TABLE, "orders"):
        connection.cursor().execute(f"DROP TABLE {table}")
    connection.commit()
    connection.close()


def execute(shop: Any, sql: str) -> None:
    for statement in filter(str.strip, sql.split(";\n")):
        shop.cursor().execute(statement)
    shop.commit()


def test_the_order_of_the_page_is_closed_unless_it_is_paid(outbox: Outbox, shop: Any) -> None:
    order, payment, _, failed = (block.text for block in blocks(read(PAGE), "sql"))
    execute(shop, order)
    assert outbox.once().returncode == 0
    job = outbox.client.get("close-1001")
    assert job is not None
    assert (job.state.value, job.body, job.tags) == ("delayed", '{"order": 1001}', ("order:1001",))
    execute(shop, payment)
    outbox.once()
    assert outbox.state("close-1001") == "cancelled"
    outbox.insert(id="close-1001", options={"ttr": 0})
    assert outbox.once().returncode == 1
    execute(shop, failed)
    assert outbox.rows("failed") == [None]


def test_a_table_of_an_earlier_version_learns_to_refuse_odd_ids(outbox: Outbox, shop: Any) -> None:
    unchecked(outbox)
    outbox.insert(id="a1 ", cancel=True)
    outbox.database.execute(f"DELETE FROM {outbox.table}")
    execute(shop, blocks(read(PAGE), "sql")[2].text)
    with pytest.raises(Exception, match=r"(?i)constraint"):
        outbox.insert(id="a1 ", cancel=True)
    outbox.insert(id="a1", cancel=True)


def test_the_python_of_the_page_pushes_and_cancels(outbox: Outbox, shop: Any) -> None:
    (program,) = blocks(read(PAGE), "python")
    exec(program.text, {"session": shop})
    shop.commit()
    assert "1 pushed, 2 cancelled" in outbox.once().stderr
    assert outbox.state("close-1001") == "cancelled"


def test_a_migration_can_execute_the_printed_sql(outbox: Outbox) -> None:
    """As Alembic does, which takes a colon for a parameter, and as Laravel and Django do: all in one."""
    outbox.database.execute(f"DROP TABLE {outbox.table}")
    driver = {"mariadb": "mysql+pymysql", "postgresql": "postgresql+psycopg"}
    where = outbox.database.dsn.partition(":")[2]
    engine = create_engine(f"{driver[outbox.database.kind]}:{where}")
    with engine.begin() as connection:
        connection.execute(text(outbox.run("--init-sql").stdout))
    engine.dispose()
    outbox.insert(id=outbox.topic)
    assert outbox.once().returncode == 0
    assert outbox.state(outbox.topic) == "ready"

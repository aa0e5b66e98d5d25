"""The options of the relay's URL, on real databases: TLS to MariaDB, those of libpq to PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pymysql
import pytest

from delayqueue.relay.mysql import MySQL
from delayqueue.relay.postgres import Postgres
from tests import certificates
from tests.processes import run_program
from tests.relay.databases import Database, running

LEASE_S: Final = 30
CIPHER: Final = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"


class Secure(NamedTuple):
    """A MariaDB that speaks TLS, for 127.0.0.1, its certificate, that of its clients, and one of nobody."""

    database: Database
    server: certificates.Pair
    client: certificates.Pair
    other: certificates.Pair

    def url(self, options: str, host: str = "127.0.0.1", user: str = "root") -> str:
        """A URL with these options, in which {server}, {client}, {key} and {other} are files."""
        files = {"server": self.server.cert, "client": self.client.cert, "key": self.client.key}
        port = self.database.port
        return f"mysql://{user}@{host}:{port}/test?{options.format(**files, other=self.other.cert)}"


@pytest.fixture(scope="module")
def secure() -> Iterator[Secure]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # MariaDB runs as a user without rights
        pairs = [certificates.make(folder, each) for each in ("server", "client", "other")]
        for pair in pairs:
            pair.key.chmod(0o644)
        server, client, _ = pairs
        options = [
            f"--ssl-cert={server.cert}",
            f"--ssl-key={server.key}",
            f"--ssl-ca={client.cert}",
        ]
        with running("mariadb", *options) as database:
            database.execute("CREATE USER known@'%' REQUIRE X509")
            database.execute("GRANT ALL ON test.* TO known@'%'")
            yield Secure(database, *pairs)


def asked(url: str, sql: str) -> Any:
    """The first row that the relay's own connection gives."""
    kind = MySQL if url.startswith("mysql:") else Postgres
    connection = kind(url, "delay_queue_outbox", LEASE_S).connect()
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    connection.close()
    return row


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ("ssl-mode=VERIFY_IDENTITY&ssl_ca={server}", {}),
        ("ssl-mode=VERIFY_CA&ssl-ca={server}", {"host": "localhost"}),
        ("ssl-mode=REQUIRED", {"host": "localhost"}),
        (
            "ssl-mode=VERIFY_IDENTITY&ssl_ca={server}&ssl_cert={client}&ssl_key={key}",
            {"user": "known"},
        ),
    ],
)
def test_a_connection_to_mariadb_is_encrypted_as_its_url_says(
    secure: Secure, options: str, where: dict[str, str]
) -> None:
    assert asked(secure.url(options, **where), CIPHER)[1]


@pytest.mark.parametrize(
    ("options", "where", "why"),
    [
        ("ssl-mode=VERIFY_IDENTITY&ssl_ca={other}", {}, "certificate verify failed"),
        ("ssl-mode=VERIFY_CA&ssl_ca={other}", {}, "certificate verify failed"),
        ("ssl-mode=VERIFY_IDENTITY&ssl_ca={server}", {"host": "localhost"}, "Hostname mismatch"),
        ("ssl-mode=VERIFY_IDENTITY&ssl_ca={server}", {"user": "known"}, "Access denied"),
    ],
)
def test_a_server_that_is_not_who_the_url_says_gets_no_password(
    secure: Secure, options: str, where: dict[str, str], why: str
) -> None:
    with pytest.raises(pymysql.OperationalError, match=why):
        asked(secure.url(options, **where), CIPHER)


def test_a_server_without_tls_is_refused_if_tls_is_required(
    databases: Callable[[str], Database],
) -> None:
    with pytest.raises(pymysql.OperationalError, match="SSL"):
        asked(f"{databases('mariadb').dsn}?ssl-mode=REQUIRED", CIPHER)


def test_the_relay_makes_its_table_over_verified_tls(secure: Secure) -> None:
    url = secure.url("ssl-mode=VERIFY_IDENTITY&ssl_ca={server}")
    done = run_program("relay", "--init", settings={"relay_dsn": url})
    assert done.returncode == 0, done.stderr
    assert secure.database.execute("SELECT COUNT(*) FROM delay_queue_outbox") == ((0,),)


def test_the_options_of_a_url_for_postgresql_hold_beside_those_of_the_relay(
    databases: Callable[[str], Database],
) -> None:
    url = f"{databases('postgresql').dsn}?options=-csearch_path%3Dshop&application_name=ours"
    assert asked(url, "SHOW search_path") == ("shop",)
    assert asked(url, "SHOW application_name") == ("ours",)
    assert asked(url, "SHOW statement_timeout") == ("30s",)
    assert asked(databases("postgresql").dsn, "SHOW application_name") == ("delay-queue relay",)


def test_the_limits_of_a_relay_do_not_depend_on_what_a_pooler_passes_on(
    databases: Callable[[str], Database],
) -> None:
    """PgBouncer refuses a connection with `options`, or drops them in silence."""
    relay = Postgres(databases("postgresql").dsn, "delay_queue_outbox", LEASE_S)
    connection = relay.connect()
    assert connection.info.options == ""
    for name in ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout"):
        assert connection.execute(f"SHOW {name}").fetchone() == ("30s",)
    assert connection.execute("SHOW enable_seqscan").fetchone() == ("off",)
    connection.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://h/d?ssl_ca=/no/such/file.pem", "ssl_ca=/no/such/file.pem: No such file"),
        ("mysql://h/d?sslmode=require", "sslmode: no option of a MySQL URL here"),
        ("postgresql://u:p@h/d?ssl-mode=require", 'invalid URI query parameter: "ssl-mode"'),
        ("mysql://u:se\uff0fcret@h/d", "must be mysql://USER:PASSWORD@HOST"),
        ("postgresql://u:se\uff0fcret@h/d?x=1", 'invalid URI query parameter: "x"'),
        (
            "postgresql://u:se\uff0fcret@[::1/d",
            'IPv6 host address in URI: "postgresql://u:***@[::1/d"',
        ),
        ("postgresql://u:se%zzcret@h/d", 'invalid percent-encoded token: "***"'),
    ],
)
def test_a_url_that_cannot_be_obeyed_ends_the_relay_at_once(url: str, message: str) -> None:
    done = run_program("relay", settings={"relay_dsn": url})
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert done.stderr.startswith("delay-queue: --dsn, or DELAYQUEUE_RELAY_DSN: ")
    assert message in done.stderr
    assert "cret" not in done.stderr

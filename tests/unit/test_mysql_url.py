"""Each part of a MySQL's URL is obeyed, or refused."""

import re
import ssl
from pathlib import Path

import pytest

from delayqueue.relay.mysql_url import MySQLUrl
from tests import certificates


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> certificates.Pair:
    return certificates.make(tmp_path_factory.mktemp("tls"), "one")


def test_all_that_leads_to_the_database_is_told_to_the_driver() -> None:
    url = MySQLUrl.read(
        "mysql://us%40er:p%C3%A4ss%2F@h:7/sh%20op?unix_socket=%2Fa+b&connect-timeout=3&charset=UTF8MB4"
    )
    assert url.arguments() == {
        "host": "h",
        "port": 7,
        "user": "us@er",
        "password": "päss/".encode(),
        "database": "sh op",
        "unix_socket": "/a+b",
        "charset": "utf8mb4",
        "connect_timeout": 3,
    }
    assert "ss" not in repr(url).replace("ssl", "")
    assert MySQLUrl.read("mysql://").arguments()["host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("options", "verifies", "name_counts"),
    [
        ("ssl-mode=REQUIRED", ssl.CERT_NONE, False),
        ("ssl_mode=required&ssl_cert={cert}&ssl_key={key}", ssl.CERT_NONE, False),
        ("ssl_cert={cert}&ssl_key={key}", ssl.CERT_NONE, False),
        ("ssl_ca={cert}", ssl.CERT_REQUIRED, False),
        ("ssl-mode=VERIFY_CA&ssl-ca={cert}", ssl.CERT_REQUIRED, False),
        ("ssl-mode=VERIFY_IDENTITY&ssl_ca={cert}", ssl.CERT_REQUIRED, True),
    ],
)
def test_tls_is_as_far_as_the_mode_says(
    pair: certificates.Pair, options: str, verifies: ssl.VerifyMode, name_counts: bool
) -> None:
    url = f"mysql://h/shop?{options.format(cert=pair.cert, key=pair.key)}"
    context = MySQLUrl.read(url).arguments()["ssl"]
    assert (context.verify_mode, context.check_hostname) == (verifies, name_counts)
    assert bool(context.get_ca_certs()) == (verifies == ssl.CERT_REQUIRED)


def test_a_server_may_be_without_tls_unless_a_mode_asks_for_it() -> None:
    assert (
        not {"ssl", "ssl_disabled"}
        & MySQLUrl.read("mysql://h/?ssl-mode=PREFERRED").arguments().keys()
    )
    assert MySQLUrl.read("mysql://h/?ssl-mode=disabled").arguments()["ssl_disabled"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "mysql://h/d?sslmode=verify-full",
            "sslmode: no option of a MySQL URL here; there are ssl_mode, ",
        ),
        ("mysql://h/d?read_timeout=5", "read_timeout: no option"),
        ("mysql://h/d?ssl-mode=VERIFY", "ssl_mode=VERIFY: must be one of DISABLED, PREFERRED, "),
        ("mysql://h/d?ssl-mode=VERIFY_IDENTITY", "ssl_mode=VERIFY_IDENTITY: needs ssl_ca"),
        (
            "mysql://h/d?ssl-mode=REQUIRED&ssl_ca=a.pem",
            "ssl_ca: ssl_mode=REQUIRED verifies nothing",
        ),
        (
            "mysql://h/d?ssl-mode=PREFERRED&ssl_cert=a",
            "ssl_cert, ssl_key: go with ssl_mode=REQUIRED",
        ),
        ("mysql://h/d?ssl-mode=REQUIRED&ssl_key=a", "ssl_key: goes with ssl_cert"),
        ("mysql://h/d?ssl_ca=/no/such/file.pem", "ssl_ca=/no/such/file.pem: No such file"),
        ("mysql://h/d?ssl_cert=/no/such/file.pem", "ssl_cert, ssl_key: /no/such/file.pem: No such"),
        ("mysql://h/d?ssl_ca=a&ssl-ca=b", "ssl_ca: must be there once"),
        ("mysql://h/d?ssl_ca", "ssl_ca: must be there once, with a value"),
        ("mysql://h/d?charset=latin1", "charset=latin1: the relay speaks utf8mb4"),
        ("mysql://h/d?connect_timeout=0", "connect_timeout=0: must be 1 to 3600 seconds"),
        ("mysql://u:pa#ss@h/d", "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F"),
        ("mysql://u:pa/ss@h/d", "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F"),
        ("mysql://u:pa[ss@h/d", "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F"),
        ("mysql://u:pa\uff0fss@h/d", "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F"),
        ("mysql://h:x/d", "must be mysql://USER:PASSWORD@HOST:PORT/NAME, with %2F"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_with_a_word(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        MySQLUrl.read(url).arguments()


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ValueError, match=r"ca\.pem"):
        MySQLUrl.read(f"mysql://h/d?ssl_ca={tmp_path}/ca.pem").arguments()

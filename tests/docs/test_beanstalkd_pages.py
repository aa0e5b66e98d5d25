"""Frameworks whose drivers speak beanstalkd's protocol, set up as the page for its clients says."""

import json
import os
import shlex
from pathlib import Path
from typing import Final

import pytest
import yaml

from delayqueue.client import Client
from tests.processes import REPOSITORY, QueueServer

from .markdown import at, ended, shown
from .test_orders import needs

PAGE: Final = "docs/howto/beanstalkd.md"
HERE: Final = REPOSITORY / "tests" / "docs"
PHP: Final = Path("/usr/share/php")


class Framework:
    """A program that stands in for a framework's own, such as `php artisan`."""

    def __init__(self, *program: str, environment: dict[str, str] | None = None) -> None:
        self._program = program
        self._environment = os.environ | (environment or {})

    def __call__(self, *words: str) -> str:
        """What it prints."""
        done = ended([*self._program, *words], environment=self._environment)
        assert done.returncode == 0, done
        return done.stdout

    def work(self, command: str, *limits: str) -> list[str]:
        """What the worker prints, started by the page's `command`, such as "php artisan", until its limits."""
        return self(*shlex.split(command)[2:], *limits).splitlines()


def test_laravels_own_connection_closes_orders(server: QueueServer) -> None:
    needs("php", [PHP / "Illuminate/Cache/autoload.php", PHP / "Pheanstalk/autoload.php"])
    connection = at(server, shown(PAGE, "php", "'beanstalkd'"))
    laravel = Framework("php", f"{HERE}/laravel_beanstalkd.php", connection)
    laravel("place", "1001", "1")
    laravel("place", "nobody", "0")
    printed = laravel.work(shown(PAGE, "sh", "php artisan queue:work beanstalkd"), "--max-jobs=2")
    said = [line for line in printed if not line.startswith("[")]  # [time] Processing: …
    assert said == ["closed order 1001"]
    assert len(printed) == 4  # the other job is delivered again later


def test_ongroup_has_no_effect_through_laravels_own_connection(server: QueueServer) -> None:
    needs("php", [PHP / "Illuminate/Cache/autoload.php", PHP / "Pheanstalk/autoload.php"])
    connection = at(server, shown(PAGE, "php", "'beanstalkd'"))
    laravel = Framework("php", f"{HERE}/laravel_beanstalkd.php", connection)
    with Client(server.url) as queue:
        queue.limit("grouped", group_concurrency=1)
        laravel("group", "1001", "customer-7")
        laravel("group", "1002", "customer-7")
        held = queue.pop("grouped")
        assert held is not None
        assert held.group == ""
        printed = laravel("queue:work", "beanstalkd", "--queue=grouped", "--max-jobs=1")
        assert "closed order 1002\n" in printed  # although one of the customer is in hand
        queue.finish(held)


def test_symfonys_own_transport_closes_orders(server: QueueServer) -> None:
    page = "docs/howto/symfony.md"
    needs("php", [PHP / "Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php"])
    settings = yaml.safe_load(shown(page, "yaml", "# config/packages/messenger.yaml"))
    transports = yaml.safe_load(at(server, shown(PAGE, "yaml", "async:")))
    assert transports.keys() == settings["framework"]["messenger"]["transports"].keys()
    transports["async"]["retry_strategy"]["delay"] = 600_000  # on a busy machine PHP starts slowly
    settings["framework"]["messenger"]["transports"] = transports
    symfony = Framework("php", f"{HERE}/symfony.php", json.dumps(settings))
    symfony("place", "1001", "1000")
    symfony("place", "nobody", "0")
    assert symfony.work(shown(page, "sh", "php bin/console"), "--limit=2") == ["closed order 1001"]
    assert symfony("count", "async") == "0\n"  # the failed one is delayed


def test_yiis_own_driver_closes_orders(server: QueueServer) -> None:
    vendor = os.environ.get("DELAYQUEUE_YII")
    if vendor is None:
        pytest.skip("DELAYQUEUE_YII is not set: a vendor/ with yii2-queue and pheanstalk")
    config = at(server, shown(PAGE, "php", "'bootstrap'"))
    yii = Framework(
        "php", f"{HERE}/yii.php", environment={"YII_VENDOR": vendor, "YII_CONFIG": config}
    )
    yii("place", "1001", "0")
    yii("paid", "1002", "0")
    assert yii("queue/run") == "closed order 1001\n"

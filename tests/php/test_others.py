"""Packages for frameworks that are not in Debian: their classes run with lines that stand in for the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.processes import REPOSITORY

from .project import Project

if TYPE_CHECKING:
    from delayqueue import Client
    from tests.processes import QueueServer

STAND_INS: Final = REPOSITORY / "tests/php/stand_ins"


@pytest.fixture(scope="module")
def think(tmp_path_factory: pytest.TempPathFactory, server: QueueServer) -> Project:
    library = ("3.0.9", [str(STAND_INS / "think_queue.php")])
    project = Project(
        tmp_path_factory.mktemp("think"),
        "delay-queue/think-queue",
        libraries={"topthink/think-queue": library},
    )
    project.variables["DELAYQUEUE_URL"] = server.url
    return project


def test_think_queue_pushes_pops_releases_and_deletes(think: Project, queue: Client) -> None:
    said = think.php(
        """
        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'think', 'wait' => 1]);
        $connection->setApp(new think\\App());
        $id = $connection->push('CloseOrder', ['id' => '3006']);
        $connection->later(1800, 'CloseOrder', [], 'think-later');
        $job = $connection->pop();
        echo $job->getJobId() === $id ? 'its id' : 'another id', " {$job->attempts()} {$job->getRawBody()}\\n";
        $job->release();
        $job = $connection->pop();
        echo "attempt {$job->attempts()}, {$connection->size()} and {$connection->size('think-later')}\\n";
        $job->delete();
        echo "{$connection->size()} left\\n";
        var_dump($connection->pop());
        echo $connection->pushRaw('{}', 'think-later', ['id' => 'mine', 'tags' => ['t'], 'delay' => '1h']), "\\n";
        echo $connection->client()->cancel('t'), "\\n";
        """
    )
    assert said.splitlines() == [
        'its id 1 {"job":"CloseOrder","data":{"id":"3006"}}',
        *("attempt 2, 1 and 1", "0 left", "NULL", "mine", "1"),
    ]
    [later] = queue.list_jobs("think-later").jobs
    assert (later.state, later.ttr) == ("delayed", 90)

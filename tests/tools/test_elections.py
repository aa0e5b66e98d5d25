"""What one replica has confirmed can be lost if another is elected, so `redis.min_replicas` should be all of them."""

from pathlib import Path

import pytest

from faults.bed import CannotRun
from faults.elections import A_WINS, B_WINS, elections


@pytest.mark.seldom  # it tries Redis, not our code
@pytest.mark.parametrize(
    ("case", "elected"),
    [("Sentinel, all else is well", A_WINS), ("Sentinel, the Sentinels do not reach A", B_WINS)],
)
def test_the_replica_that_confirmed_is_elected_only_where_sentinels_reach_it(
    tmp_path: Path, case: str, elected: str
) -> None:
    try:
        [(_, _, found)] = elections(tmp_path, times=1, only=case)
    except CannotRun as reason:
        pytest.skip(str(reason))
    assert found == {elected: 1}

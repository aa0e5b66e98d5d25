"""A wheel and its clock: the time of fakeredis, which the test turns."""

from typing import Final

import pytest

from tests.store.bucket import HOUR_MS

DAY_MS: Final = 24 * HOUR_MS
START_MS: Final = 1_800_000_000_000  # on the hour
SLOTS: Final = (60, 3600, 36_000)

coarse = pytest.mark.parametrize("wheel", [60], indirect=True)  # fakeredis is slow with more
fine = pytest.mark.parametrize("wheel", [3600], indirect=True)


class Clock:
    """The time of fakeredis, which only this moves."""

    now_ms = START_MS

    def time(self) -> float:
        return self.now_ms / 1000

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms

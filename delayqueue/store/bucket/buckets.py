"""Which bucket an id belongs to, and how many buckets there are, by the data's layout, which can change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from delayqueue.store.bucket.keys import BucketKeys


@dataclass(frozen=True, slots=True)
class Layout:
    """How jobs are distributed over buckets.

    `former_sizes` are the earlier numbers of buckets, in order. While `moving`, jobs are on their way here from the
    last of them. Each change has a higher `generation`, the first one 1. `fenced` is true once no server can work by an
    older layout.
    """

    size: int = 1
    generation: int = 0
    former_sizes: tuple[int, ...] = ()
    moving: bool = False
    fenced: bool = True

    @property
    def former_size(self) -> int:
        """The previous number of buckets; the present one if it was never changed."""
        return self.former_sizes[-1] if self.former_sizes else self.size

    @property
    def count(self) -> int:
        """How many buckets hold jobs."""
        return max(self.size, self.former_size) if self.moving else self.size


ONE_BUCKET: Final = Layout()


class Buckets:
    """The buckets, numbered from 0 here; their names count from 1, as in the original."""

    def __init__(self, bucket_name: str, queue_name: str, layout: Layout = ONE_BUCKET) -> None:
        self._names = bucket_name, queue_name
        # of all buckets that this process knows: those that hold jobs, or did since it started
        self.keys: Final[list[BucketKeys]] = []
        self._listeners: list[Callable[[], None]] = []  # of new buckets
        self._followers: list[Callable[[], None]] = []  # of the layout
        self.adopt(layout)

    @property
    def count(self) -> int:
        """How many hold jobs."""
        return self.layout.count

    @property
    def tags(self) -> list[str]:
        """The tags of those that hold jobs."""
        return [each.tag for each in self.keys[: self.count]]

    def know(self, count: int) -> None:
        """There are `count` buckets, whether they hold jobs or not."""
        missing = range(len(self.keys), count)
        self.keys.extend(BucketKeys.of(number + 1, *self._names) for number in missing)
        if missing:
            for listener in self._listeners:
                listener()

    def of(self, job_id: str) -> int:
        """The bucket that the id belongs to."""
        if self.layout.size == 1:
            return 0
        return crc32(job_id.encode()) % self.layout.size

    def astray(self, bucket: int, ids: Iterable[str]) -> dict[int, list[str]]:
        """Those of `bucket`'s ids whose job may still be in another bucket, grouped by that one."""
        found: dict[int, list[str]] = {}
        if self.layout.moving:
            for job_id in ids:
                former = crc32(job_id.encode()) % self.layout.former_size
                if former != bucket:
                    found.setdefault(former, []).append(job_id)
        return found

    def on_growth(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever there are new buckets."""
        self._listeners.append(listener)

    def on_change(self, follower: Callable[[], None]) -> None:
        """Call `follower` whenever another layout is used."""
        self._followers.append(follower)

    def adopt(self, layout: Layout) -> None:
        """Use this layout from now on."""
        self.layout = layout
        self.know(layout.count)
        for follower in self._followers:
            follower()

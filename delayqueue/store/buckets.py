"""Which bucket an id belongs to, and how many buckets there are, by the layout of the data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from delayqueue.domain.push_rules import in_group
from delayqueue.errors import Invalid
from delayqueue.store.keys import BucketKeys, literal


@dataclass(frozen=True, slots=True)
class Layout:
    """How jobs are distributed over `size` buckets.

    Each change of their number has a higher `generation`; `former_sizes` are the earlier numbers, in order. `braces`:
    an id that begins with a text in braces is in the bucket of that text, as in a Redis Cluster; said only of several
    buckets.
    """

    size: int = 1
    generation: int = 0
    former_sizes: tuple[int, ...] = ()
    braces: bool = False

    def bucket_of(self, job_id: bytes) -> int:
        """The bucket that the id belongs to."""
        if self.braces and job_id.startswith(b"{") and (end := job_id.find(b"}")) > 1:
            job_id = job_id[1:end]
        return crc32(job_id) % self.size


ONE_BUCKET: Final = Layout()


class Buckets:
    """The buckets, numbered from 0 here; their names count from 1, as in the original."""

    def __init__(self, bucket_name: str, queue_name: str, layout: Layout = ONE_BUCKET) -> None:
        self._names = bucket_name, queue_name
        self.queue_name: Final = queue_name
        # of the names of all keys, for SCAN
        self.pattern: Final = "{" + literal(bucket_name).replace("%d", "*") + "}:*"
        # of all buckets that this process knows: those that hold jobs, or did since it started
        self.keys: Final[list[BucketKeys]] = []
        self._listeners: list[Callable[[], None]] = []
        self.adopt(layout)

    @property
    def count(self) -> int:
        """How many hold jobs."""
        return self.layout.size

    @property
    def tags(self) -> list[str]:
        """The tags of those that hold jobs."""
        return [each.tag for each in self.keys[: self.count]]

    def know(self, count: int) -> None:
        """There are `count` buckets, whether they hold jobs or not."""
        missing = range(len(self.keys), count)
        self.keys.extend(BucketKeys.of(number + 1, *self._names) for number in missing)
        for listener in self._listeners:
            listener()

    def of(self, job_id: str) -> int:
        """The bucket that the id belongs to."""
        if self.layout.size == 1:
            return 0
        return self.layout.bucket_of(job_id.encode())

    def check_group(self, job_id: str, group: str) -> None:
        """Raises Invalid if other jobs of the group can be in another bucket than this one."""
        if self.layout.size == 1:
            return
        if not self.layout.braces:
            size = self.layout.size
            raise Invalid.of(
                f"group：数据的布局还不支持，请先运行 delay-queue rebalance --buckets {size}",
                f"group: the layout of the data knows none; run `delay-queue rebalance --buckets {size}` first",
            )
        if group.startswith("}"):
            raise Invalid.of("group：不能以 } 开头", "group: must not begin with }")
        if not job_id.startswith(in_group(group, "")):
            right = in_group(group, job_id)
            raise Invalid.of(
                f"id：bucket_size 大于 1 时，group的job的id须以花括号中的group开头，如 {right}",
                f"id: with several buckets the id of a job begins with its group in braces, like {right}",
            )

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever there may be new buckets, or another layout is used."""
        self._listeners.append(listener)

    def adopt(self, layout: Layout) -> None:
        """Use this layout from now on."""
        self.layout = layout
        self.know(layout.size)

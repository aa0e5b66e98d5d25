"""The keys of an installation of the original, and those that an import adds beside them.

| key               | type   | what                                                                                  |
| ----------------- | ------ | ------------------------------------------------------------------------------------- |
| ID                | string | a packed job (packed.py); php-cpm/delay-queue puts `dq_key_` before the id            |
| dq_bucket_N       | zset   | id -> unix second: when it is due, or when its TTR expires                            |
| dq_queue_TOPIC    | list   | ids that are ready                                                                    |
| dq_import:lock    | string | the import that is working here; expires                                              |
| dq_import:moving  | hash   | id -> "" = may have been staged in the destination, or due ms = has been taken        |
| dq_import:to      | string | the destination of those                                                              |
| dq_import:aside   | hash   | id -> why it was not imported, line end, its record                                   |
| dq_import:probe:X | an entry of the first bucket that a running old server removes within a second         |
"""

from typing import Final, NamedTuple

LOCK: Final = "dq_import:lock"
MOVING: Final = "dq_import:moving"
DESTINATION: Final = "dq_import:to"
ASIDE: Final = "dq_import:aside"

MOST_BUCKETS: Final = 1024
PREFIXES: Final = {"": "ouqiang/delay-queue", "dq_key_": "php-cpm/delay-queue"}


class Names(NamedTuple):
    """The key names of an installation."""

    key_prefix: str  # of each job's key, before its id
    bucket_name: str  # with %d
    queue_name: str  # with %s

    def buckets(self) -> list[str]:
        """The keys of all buckets that there can be."""
        numbers = range(1, MOST_BUCKETS + 1)
        return [self.bucket_name.replace("%d", str(number)) for number in numbers]

    def queue(self, topic: str) -> bytes:
        """The key of a topic's ready list."""
        return self.queue_name.replace("%s", topic).encode()

    def queue_pattern(self) -> str:
        """The SCAN pattern for ready lists."""
        return literal(self.queue_name).replace("%s", "*")

    def record_pattern(self) -> str:
        """The SCAN pattern for records."""
        return f"{literal(self.key_prefix)}*"


def literal(text: str) -> str:
    r"""Escape a text for a pattern: "a*" becomes "a\*"."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)

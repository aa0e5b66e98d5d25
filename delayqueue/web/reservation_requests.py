"""What the endpoints that end, give back or extend a reservation take."""

from delayqueue.errors import Invalid, Text
from delayqueue.job import MAX_MESSAGE_CHARS
from delayqueue.web.fields import check_delay, check_seconds, check_ttr
from delayqueue.web.requests import IdRequest, Number, OneRequest


class EndRequest(IdRequest):
    """Jobs to finish or delete."""

    receipt: str | None = None
    receipts: list[str] | None = None
    message: str | None = None

    any_case = True

    def proofs(self) -> list[str]:
        """The receipt of each id, "" where none was given."""
        if self.ids is None:
            if self.receipts:
                raise Invalid(
                    Text("receipts 只能和 ids 一起用", "receipts: go with ids, not with id")
                )
            return [self.receipt or ""]
        if self.receipt:
            raise Invalid(Text("receipt 只能和 id 一起用", "receipt: goes with id, not with ids"))
        if self.receipts is None:
            return [""] * len(self.ids)
        if len(self.receipts) != len(self.ids):
            raise Invalid(
                Text(
                    "receipts 和 ids 的个数必须相同",
                    f"receipts: must be one for each of ids, {len(self.ids)}, not {len(self.receipts)}",
                )
            )
        return self.receipts

    def note(self) -> str:
        """The message; its tail is cut off where it is too long."""
        return (self.message or "")[:MAX_MESSAGE_CHARS]


class BuryRequest(OneRequest):
    """A job to give up."""

    receipt: str | None = None
    message: str | None = None

    def note(self) -> str:
        """The message; its tail is cut off where it is too long."""
        return (self.message or "")[:MAX_MESSAGE_CHARS]


class ReleaseRequest(BuryRequest):
    """A reserved job to give back."""

    delay: Number | None = None
    fallback: Number | None = None

    def delay_ms(self) -> int | None:
        """How long it waits; None = as its schedule says."""
        return None if self.delay is None else check_delay(self.delay)

    def fallback_ms(self) -> int | None:
        """How long it waits where it has no schedule; None = not at all."""
        return None if self.fallback is None else check_seconds("fallback", self.fallback)


class TouchRequest(OneRequest):
    """A reservation to extend."""

    receipt: str | None = None
    ttr: int | None = None

    def ttr_ms(self) -> int | None:
        """For how long from now; None = the job's own TTR."""
        return None if self.ttr is None else check_ttr(self.ttr)

"""Typed bodies: what is pushed, and what handlers get."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from delayqueue import Worker, testing
from delayqueue.client import Job, Payload
from delayqueue.client.payload import body_of
from delayqueue.testing import Buried, Finished
from delayqueue.worker import ReservedJob  # read by the worker
from tests.client import test_round_trips as kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tests.client.conftest import Caller

    Elsewhere: TypeAlias = str


Name = NewType("Name", str)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Item:
    name: str
    price: Decimal
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Order:
    id: UUID
    placed: datetime
    items: list[Item]
    patience: timedelta = timedelta(minutes=30)
    tags: frozenset[str] = frozenset()
    day: date | None = None


@dataclass(frozen=True)
class Holder:
    held: dict[Any, Any]


class Payment(BaseModel):
    order: str
    cents: int = Field(gt=0)


class Parcel(TypedDict):
    weight: float


@dataclass
class Wrapped:
    payment: Payment
    more: dict[str, Any] = field(default_factory=dict[str, Any])


ORDER = Order(
    UUID(int=7),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    [Item("tea", Decimal("4.20"))],
    tags=frozenset({"gift"}),
    day=date(2026, 2, 1),
)


def handler_of(kind: Any, got: list[Any]) -> Callable[[Any], None]:
    """A handler whose argument is annotated like this."""

    def handle(said: Any) -> None:
        got.append(said)

    handle.__annotations__["said"] = kind
    return handle


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Order, ORDER),
        (Payment, Payment(order="1001", cents=420)),
        (Parcel, {"weight": 1.5}),
        (Wrapped, Wrapped(Payment(order="1001", cents=420), {"a": [None, True, "ü"]})),
        (dict[str, Any], {"a": 1, "b": {"c": []}}),
        (list, [1, "a"]),
        (Payment | Parcel, {"weight": 1.5}),
        (str, "no JSON at all {"),
        (kinds.Colour, kinds.Colour.RED),
        (kinds.Level, kinds.Level.HIGH),
        (kinds.Size, kinds.Size.BIG),
        (Literal["a", "b"], "a"),
        (Literal["1"], "1"),
        (Literal["a"] | kinds.Colour, kinds.Colour.RED),
        (Annotated[str, Field(max_length=5)], "short"),
        (Name, Name("null")),
        (kinds.Aliased, kinds.Aliased(orderId="1")),
    ],
)
def test_a_handler_gets_what_was_pushed(kind: Any, payload: Payload) -> None:
    got: list[Any] = []
    worker = Worker()
    worker.on("t")(handler_of(kind, got))
    assert testing.run(worker, "t", payload) == Finished()
    assert got == [payload]
    assert type(got[0]) is type(payload)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        (Payment, '{"order":"1001"}', "the body is not a valid Payment: cents: Field required"),
        (
            Payment,
            '{"order":1,"cents":0}',
            (
                "the body is not a valid Payment: order: Input should be a valid string; "
                "cents: Input should be greater than 0"
            ),
        ),
        (dict[str, Any], "[]", "the body is not a valid dict[str, typing.Any]: it is a list"),
    ],
)
def test_a_body_that_does_not_fit_is_buried_with_the_reason(
    kind: Any, body: str, reason: str
) -> None:
    worker = Worker()
    worker.on("t", max_attempts=None)(handler_of(kind, []))
    assert testing.run(worker, "t", body) == Buried(reason)


@pytest.mark.parametrize("body", ["", "{", "null", "17"])
def test_what_is_no_object_is_buried(body: str) -> None:
    worker = Worker()
    worker.on("t")(handler_of(Order, []))
    verdict = testing.run(worker, "t", body)
    assert isinstance(verdict, Buried)
    assert verdict.message.startswith("the body is not a valid Order: ")


def test_a_handler_may_want_the_body_the_job_and_the_context() -> None:
    worker = Worker()

    @worker.on("t")
    async def all_of_them(payment: Payment, shop: Elsewhere, job: ReservedJob) -> str:
        return f"{payment.cents} {shop} {job.topic}"

    said = testing.run(worker, "t", Payment(order="1", cents=5), context="Ann's")
    assert said == Finished("5 Ann's t")


def test_what_no_handler_gets_is_refused_at_once() -> None:
    def unknown(payment: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    def too_much(payment: Payment, shop: str, bank: str) -> None:
        pass

    for handler, says in ((unknown, "Nowhere is not known"), (too_much, "shop and bank")):
        with pytest.raises(ValueError, match=says):
            Worker().on("t")(handler)


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": object()}, {("a", 1): 2}])
def test_what_json_cannot_say_is_refused_by_the_client(payload: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        body_of(payload)


async def test_bodies_are_plain_json_for_other_languages(client: Caller, topic: str) -> None:
    await client.push(topic, ORDER)
    await client.push_many([Job(topic=topic, body=Payment(order="ü", cents=1))])
    order, payment = [(await client.pop(topic, wait=20)).body for _ in range(2)]
    assert json.loads(order) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "placed": "2026-01-31T12:00:00+00:00",
        "items": [{"name": "tea", "price": "4.20", "colour": "red"}],
        "patience": 1800.0,
        "tags": ["gift"],
        "day": "2026-02-01",
    }
    assert payment == '{"order":"ü","cents":1}'


def test_keys_that_would_be_one_in_json_are_refused() -> None:
    with pytest.raises(TypeError, match="two keys of a dict are the same in a body"):
        body_of({"days": {date(2026, 1, 31): "a", "2026-01-31": "b"}})
    pairs: list[dict[Any, Any]] = [
        {1: "a", "1": "b"},
        {True: 1, "true": 2},
        {None: 1, "null": 2},
        {1.5: 1, "1.5": 2},
    ]
    for same in pairs:
        for payload in (same, [{"a": (same,)}], Holder(same), [MappingProxyType(same)]):
            with pytest.raises(TypeError, match="two keys of a dict are the same in a body"):
                body_of(payload)


def test_keys_that_json_makes_texts_of_are_kept_if_they_differ() -> None:
    keyed: dict[Any, Any] = {1: "a", 2.5: "b", None: "n", "x": {UUID(int=7): [1]}}
    same = {"1": "a", "2.5": "b", "null": "n", "x": {str(UUID(int=7)): [1]}}
    assert json.loads(body_of(keyed)) == same
    assert json.loads(body_of(Holder({3: 1}))) == {"held": {"3": 1}}
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="Circular"):
        body_of(loop)


def test_only_who_needs_pydantic_must_have_it() -> None:
    program = """
import sys
sys.modules["pydantic"] = None
from dataclasses import dataclass
from delayqueue import Worker, testing
@dataclass
class Order:
    id: str
worker = Worker()
@worker.on("plain")
def plain(order: dict) -> str: return order["id"]
assert testing.run(worker, "plain", Order("1001")).message == "1001"
try:
    @worker.on("typed")
    def typed(order: Order) -> None: pass
except ValueError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "typed: bodies of Order are read by pydantic: pip install pydantic\n"

"""What is pushed is what a handler is called with, as its body or as an argument of a task, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence  # read by the worker
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field
from pydantic_core import core_schema
from typing_extensions import TypedDict

from delayqueue import Worker, testing
from delayqueue.client import Job, Payload
from delayqueue.client.payload import body_of
from delayqueue.testing import Buried, Finished, Queue
from delayqueue.worker import ReservedJob  # read by the worker
from tests.processes import python

if TYPE_CHECKING:
    from typing import TypeAlias

    from tests.client.conftest import Caller

    Elsewhere: TypeAlias = str


NAN: Final = float("nan")


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    HIGH = "high"


class Size(IntEnum):
    BIG = 3


class Aliased(BaseModel):
    order_id: str = Field(alias="orderId")


class Renamed(BaseModel):
    """It is written by one name, and read by another."""

    order_id: str = Field(validation_alias="orderId", serialization_alias="order")


class Counted(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cents: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def euros(self) -> float:
        return self.cents / 100


class Login(BaseModel):
    name: str
    password: SecretStr


class Price(BaseModel):
    cents: float | None = None
    names: Sequence[str] = ()


class SalePrice(Price):
    until: date


class Hidden(BaseModel):
    name: str = Field(default="", exclude=True)


Name = NewType("Name", str)


@dataclass
class Parcel:
    owner: Aliased
    sizes: tuple[int, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict[str, Any])


class Point:
    """A type without ==, and with a form of JSON."""

    def __init__(self, x: int) -> None:
        self.x = x

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        return core_schema.no_info_plain_validator_function(
            lambda given: given if isinstance(given, Point) else cls(given),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda point: point.x),
        )


class Place(BaseModel):
    point: Point


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


class Weighed(TypedDict):
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

    def handle(it: Any) -> None:
        got.append(it)

    handle.__annotations__["it"] = kind
    return handle


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Order, ORDER),
        (Payment, Payment(order="1001", cents=420)),
        (Weighed, {"weight": 1.5}),
        (Wrapped, Wrapped(Payment(order="1001", cents=420), {"a": [None, True, "ü"]})),
        (dict[str, Any], {"a": 1, "b": {"c": []}}),
        (list, [1, "a"]),
        (Payment | Weighed, {"weight": 1.5}),
        (str, "no JSON at all {"),
        (Colour, Colour.RED),
        (Level, Level.HIGH),
        (Size, Size.BIG),
        (Literal["a", "b"], "a"),
        (Literal["1"], "1"),
        (Literal["a"] | Colour, Colour.RED),
        (Annotated[str, Field(max_length=5)], "short"),
        (Name, Name("null")),
        (Aliased, Aliased(orderId="1")),
        (dict[UUID, int], {UUID(int=7): 1}),
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


def test_what_annotated_adds_to_a_type_counts() -> None:
    """Also if it has no hash, as a dict, and if annotations are texts, as in this module."""
    worker = Worker()

    def handle(cents: Annotated[int, Field(gt=0), {"unit": "cent"}]) -> int:
        return cents

    worker.on("t")(handle)
    task = worker.task("task")(handle)
    assert testing.run(worker, "t", "5") == Finished("5")
    says = "Input should be greater than 0"
    assert testing.run(worker, "t", "0") == Buried(f"the body is not a valid int: {says}")
    assert testing.run(worker, "task", {"cents": 0}).message.endswith(f"cents: {says}")
    assert task.job(5).body == '{"cents":5}'
    with pytest.raises(TypeError, match=says):
        task.job(0)


def test_a_job_is_one_whatever_annotated_adds() -> None:
    worker = Worker()

    def handle(job: Annotated[ReservedJob, "mine"], same: Annotated[ReservedJob, "too"]) -> str:
        return f"{job.body} {same.body}"

    worker.on("t")(handle)
    assert testing.run(worker, "t", "a") == Finished("a a")


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
    assert (
        python("-c", program).stdout
        == "typed: bodies of Order are read by pydantic: pip install pydantic\n"
    )


def task_of(kind: Any) -> tuple[Any, Queue, list[Any]]:
    """A task with one argument that is annotated so, its queue, and what it was called with."""
    worker, got = Worker(), list[Any]()
    queue = worker.client = Queue(worker)

    task: Any = worker.task("t")(handler_of(kind, got))
    return task, queue, got


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Aliased, Aliased(orderId="1")),
        (Parcel, Parcel(Aliased(orderId="1"), (1, 2), {"a": [None, True, "ü"]})),
        (list[Parcel], [Parcel(Aliased(orderId="1"))]),
        (Price, Price(cents=1, names=("a", "b"))),
        (Sequence[str], ("a", "b")),
        (Iterable[int], [1, 2]),
        (set[str], {"a", "b"}),
        (Mapping[str, int], {"a": 1}),
        (dict[UUID, int], {UUID(int=7): 1}),
        (dict[Colour, int], {Colour.RED: 1}),
        (dict[Level, int], {Level.HIGH: 1}),
        (dict[Size, int], {Size.BIG: 1}),
        (dict[date, int], {date(2026, 1, 31): 1}),
        (dict[str, dict[UUID, int]], {"a": {UUID(int=7): 1}}),
        (dict[int, str], {1: "a"}),
        (Colour, Colour.RED),
        (Level, Level.HIGH),
        (Literal["a", "b"], "a"),
        (datetime, datetime(2026, 1, 31, 12, 0, 0, 7, UTC)),
        (timedelta, timedelta(days=9, microseconds=1)),
        (Decimal, Decimal("4.20")),
        (UUID, UUID(int=7)),
        (int | None, None),
        (float, 3),
        (Any, {"a": [1, 2.5, "b", None, True]}),
        (dict, {}),
        (Point, Place(point=Point(3))),
    ],
)
def test_an_argument_arrives_as_it_was_given(kind: Any, given: Any) -> None:
    task, queue, got = task_of(Place if kind is Point else kind)
    task.push(given)
    [ran] = queue.advance()
    assert ran.verdict == Finished()
    if kind is Point:
        assert got[0].point.x == 3
    elif kind == Iterable[int] or isinstance(given, Price):
        assert [*got[0]] == [*given] or got[0].names == [*given.names]
    else:
        assert got[0] in (given, list(given) if isinstance(given, tuple) else given)


@pytest.mark.parametrize(
    ("kind", "given"),
    [(UUID, str(UUID(int=7))), (datetime, "2026-01-31T12:00:00Z"), (Aliased, {"orderId": "1"})],
)
def test_what_the_annotation_takes_may_be_given_in_other_forms(kind: Any, given: Any) -> None:
    """As a program without type checks does it."""
    task, queue, got = task_of(kind)
    task.push(given)
    assert [ran.verdict for ran in queue.advance()] == [Finished()]
    assert isinstance(got[0], kind)


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        (int, "notint", "it: it is a str"),
        (str, None, "it: it is a NoneType"),
        (float, NAN, "it: Out of range float values are not JSON compliant"),
        (int, True, "it: it is a bool"),
        (Renamed, Renamed.model_validate({"orderId": "1"}), "it.orderId: Field required"),
        (Counted, Counted(cents=1), "it.euros: Extra inputs are not permitted"),
        (
            Login,
            Login(name="a", password=SecretStr("secret")),
            "it.password: a SecretStr would arrive as another one",
        ),
        (Price, Price(cents=NAN), "it: Out of range float values are not JSON compliant"),
        (Price, SalePrice(until=date(2026, 1, 31)), "it: a SalePrice would arrive as a Price"),
        (Hidden, Hidden(name="a"), "it.name: a str would arrive as another one"),
        (Any, UUID(int=7), "it: a UUID would arrive as a str"),
        (Any, {1: "a"}, "it: its key 1 would arrive as another one"),
        (dict, {"a": date(2026, 1, 31)}, "it.a: a date would arrive as a str"),
        (list, ["a", [Decimal(1)]], "it.1.0: a Decimal would arrive as a str"),
        (Any, object(), "it: a object has no place in a body, which is JSON"),
        (dict, {("a", 1): 1}, "it: a tuple cannot be a key in a body, which is JSON"),
        (date, "soon", "it: Input should be a valid date or datetime, input is too short"),
        (list[int], [1, "b"], "it.1: Input should be a valid integer"),
    ],
)
def test_an_argument_that_would_arrive_as_another_is_refused_where_it_is_pushed(
    kind: Any, given: Any, reason: str
) -> None:
    task, queue, got = task_of(kind)
    for push in (task.push, task.job, lambda it: task.push_many([(it,)])):
        with pytest.raises(TypeError) as refused:
            push(given)
        assert str(refused.value).startswith(f"handler_of.<locals>.handle: {reason}")
    assert "secret" not in str(refused.value)
    assert (queue.advance(), got) == ([], [])


def test_the_message_names_the_argument_of_several() -> None:
    worker = Worker()

    @worker.task("t")
    def close(order: str, cents: int, more: Any) -> None:
        """Close it."""

    wrongs: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: close.push("a", "b", 1), "close: cents: it is a str"),  # type: ignore[arg-type]
        (lambda: close.push("a", 1, {1, object}), "close: more: a type has no place in a body"),
    )
    for wrong, says in wrongs:
        with pytest.raises(TypeError, match=says):
            wrong()


def test_a_text_that_others_wrote_as_json_is_read_too() -> None:
    worker = Worker()

    @worker.on("t")
    def say(colour: Colour) -> str:
        return colour.name

    assert testing.run(worker, "t", '"red"') == Finished("RED")
    said = testing.run(worker, "t", "blue").message
    assert said == "the body is not a valid Colour: Input should be 'red'"


def test_models_are_written_by_their_aliases() -> None:
    aliased = Aliased(orderId="1")
    assert json.loads(body_of(aliased)) == {"orderId": "1"}
    assert json.loads(body_of([aliased])) == [{"orderId": "1"}]
    assert json.loads(body_of(Parcel(aliased)))["owner"] == {"orderId": "1"}


def test_what_is_nested_too_deeply_is_refused_and_buried_at_once() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^the body is nested too deeply$"):
        body_of(deep)
    task, queue, _ = task_of(Any)
    with pytest.raises(TypeError, match="handle: it: the body is nested too deeply"):
        task.push(deep)
    worker = Worker()
    worker.on("dict")(handler_of(dict, []))
    worker.on("model")(handler_of(Aliased, []))
    queue = Queue(worker)
    for topic in ("dict", "model"):
        queue.push(topic, "[" * 100_000 + "]" * 100_000)
    for ran in queue.advance():
        assert isinstance(ran.verdict, testing.Buried)
        assert ran.verdict.message.startswith("the body is not a valid ")

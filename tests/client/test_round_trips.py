"""What is pushed is what a handler is called with, or it is refused at the push."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence  # read by the worker
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field
from pydantic_core import core_schema

from delayqueue import Worker, testing
from delayqueue.client.payload import body_of
from delayqueue.testing import Finished, Queue

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


def task_of(kind: Any) -> tuple[Any, Queue, list[Any]]:
    """A task with one argument that is annotated so, its queue, and what it was called with."""
    worker, got = Worker(), list[Any]()
    queue = worker.client = Queue(worker)

    def run(it: Any) -> None:
        got.append(it)

    run.__annotations__["it"] = kind
    task: Any = worker.task("t")(run)
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
        assert str(refused.value).startswith(f"task_of.<locals>.run: {reason}")
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
    with pytest.raises(TypeError, match="run: it: the body is nested too deeply"):
        task.push(deep)
    worker = Worker()
    worker.on("dict")(_takes_a_dict)
    worker.on("model")(_takes_a_model)
    queue = Queue(worker)
    for topic in ("dict", "model"):
        queue.push(topic, "[" * 100_000 + "]" * 100_000)
    for ran in queue.advance():
        assert isinstance(ran.verdict, testing.Buried)
        assert ran.verdict.message.startswith("the body is not a valid ")


def _takes_a_dict(it: dict) -> None:  # type: ignore[type-arg]
    pass


def _takes_a_model(it: Aliased) -> None:
    pass

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock, create_autospec

import pytest
from fastapi.testclient import TestClient

from delayqueue import Client, testing
from delayqueue.client import TransportError
from delayqueue.testing import Buried, Finished, Released
from delayqueue.worker import Verdict
from shop import api, tasks
from shop.orders import Order, Orders, State
from shop.tasks import OrderTimeout, PaymentNotice, Seller, Shop

NOTICE = PaymentNotice(order="1001", cents=420)


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path / "shop.db")


@pytest.fixture
def seller() -> Mock:
    seller: Mock = create_autospec(Seller, instance=True)
    seller.tell.return_value = (200, "success")
    return seller


@pytest.fixture
def shop(orders: Orders, seller: Mock) -> Shop:
    """What the handlers get instead of the lifespan's context."""
    return Shop(orders, seller)


@pytest.fixture
def queue() -> Mock:
    queue: Mock = create_autospec(Client, instance=True)
    return queue


@pytest.fixture
def customer(orders: Orders, queue: Mock) -> Iterator[TestClient]:
    api.app.dependency_overrides = {
        api.the_queue: lambda: queue,
        Orders.of_the_shop: lambda: orders,
    }
    yield TestClient(api.app)
    api.app.dependency_overrides = {}


@pytest.mark.parametrize(
    ("before", "after"),
    [("unpaid", "closed"), ("paid", "paid"), ("closed", "closed")],
)
def test_only_an_unpaid_order_is_closed(before: State, after: State, shop: Shop) -> None:
    shop.orders.add(Order("1001", "tea", 420, before))
    timeout = OrderTimeout(order="1001")
    assert testing.run(tasks.worker, "order-timeout", timeout, context=shop) == Finished(after)
    assert shop.orders.find("1001").state == after


def test_a_timeout_without_an_order_does_no_harm(shop: Shop) -> None:
    timeout = OrderTimeout(order="1001")
    verdict = testing.run(tasks.worker, "order-timeout", timeout, context=shop)
    assert verdict == Finished("never placed")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ((200, "success"), Finished("told")),
        ((200, "fail"), Released("SellerRefuses: 200 fail")),
        ((500, "success"), Released("SellerRefuses: 500 success")),
        ((410, "gone"), Buried("the seller has left")),
    ],
)
def test_the_sellers_answer_decides(
    answer: tuple[int, str], verdict: Verdict, shop: Shop, seller: Mock
) -> None:
    shop.orders.add(Order("1001", "tea", 420, "paid"))
    seller.tell.return_value = answer
    assert testing.run(tasks.worker, "payment-notice", NOTICE, context=shop) == verdict
    seller.tell.assert_awaited_once_with(NOTICE)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("unpaid", Released("the payment is not booked yet", 5)),
        ("closed", Finished("closed before it was paid")),
    ],
)
def test_the_seller_hears_of_no_payment_that_is_not_booked(
    state: State, verdict: Verdict, shop: Shop, seller: Mock
) -> None:
    shop.orders.add(Order("1001", "tea", 420, state))
    assert testing.run(tasks.worker, "payment-notice", NOTICE, context=shop) == verdict
    seller.tell.assert_not_awaited()


def test_a_body_that_does_not_fit_is_buried(shop: Shop) -> None:
    verdict = testing.run(tasks.worker, "payment-notice", {"order": "1001"}, context=shop)
    assert verdict == Buried("the body is not a valid PaymentNotice: cents: Field required")


def test_an_order_has_half_an_hour(customer: TestClient, queue: Mock) -> None:
    placed = customer.post("/orders", json={"item": "tea", "cents": 420}).json()
    assert customer.get(f"/orders/{placed['id']}").json() == placed
    queue.push.assert_called_once_with(
        "order-timeout",
        OrderTimeout(order=placed["id"]),
        id=f"timeout-{placed['id']}",
        delay="30m",
    )


def test_a_payment_is_told_once(customer: TestClient, queue: Mock, orders: Orders) -> None:
    orders.add(Order("1001", "tea", 420))
    for _ in range(2):
        paid = customer.post("/orders/1001/pay")
        assert (paid.status_code, paid.json()["state"]) == (200, "paid")
    queue.push.assert_called_once_with("payment-notice", NOTICE, id="notice-1001", retry="alipay")


def test_a_closed_order_is_not_paid(customer: TestClient, queue: Mock, orders: Orders) -> None:
    orders.add(Order("1001", "tea", 420, "closed"))
    assert customer.post("/orders/1001/pay").status_code == 409
    queue.push.assert_not_called()


def test_without_the_queue_no_payment_is_booked(
    customer: TestClient, queue: Mock, orders: Orders
) -> None:
    orders.add(Order("1001", "tea", 420))
    queue.push.side_effect = TransportError("it is away")
    with pytest.raises(TransportError):
        customer.post("/orders/1001/pay")
    assert orders.find("1001").state == "unpaid"

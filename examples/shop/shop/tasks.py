"""What the shop does later: it closes orders that nobody paid, and notifies the seller of paid ones."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import ClientSession, ClientTimeout
from pydantic import BaseModel

from delayqueue import Bury, Retry, Worker

from .orders import NoSuchOrder, Orders

UNPAID = os.environ.get("UNPAID", "30m")
SELLER_URL = os.environ.get("SELLER_URL", "http://localhost:8001/paid")
TIMEOUT, NOTICE = "order-timeout", "payment-notice"  # the topics


class OrderTimeout(BaseModel):
    """The time to pay is over."""

    order: str


class PaymentNotice(BaseModel):
    """An order was paid: tell the seller."""

    order: str
    cents: int


@dataclass(frozen=True)
class Seller:
    """The seller of the goods."""

    session: ClientSession
    url: str

    async def tell(self, notice: PaymentNotice) -> tuple[int, str]:
        """Returns the status and the text of the answer."""
        async with self.session.post(self.url, json=notice.model_dump()) as answer:
            return answer.status, await answer.text()


@dataclass(frozen=True)
class Shop:
    """What the handlers share."""

    orders: Orders
    seller: Seller


worker = Worker()


@worker.lifespan
async def open_shop() -> AsyncGenerator[Shop, None]:
    async with ClientSession(timeout=ClientTimeout(total=30)) as session:
        yield Shop(Orders.of_the_shop(), Seller(session, SELLER_URL))


@worker.on(TIMEOUT)
def close(timeout: OrderTimeout, shop: Shop) -> str:
    """The job may be delivered twice, at the moment the customer pays, or without an order."""
    try:
        return shop.orders.settle(timeout.order, "closed").state
    except NoSuchOrder:
        return "never placed"  # the API was stopped between the job and the order


@worker.on(NOTICE)
async def notify(notice: PaymentNotice, shop: Shop) -> str:
    order = await asyncio.to_thread(shop.orders.find, notice.order)
    match order.state:
        case "closed":
            return "closed before it was paid"
        case "unpaid":
            raise Retry("5s", "the payment is not booked yet")
        case "paid":
            status, said = await shop.seller.tell(notice)
    if status == HTTPStatus.GONE:
        raise Bury("the seller has left")
    if (status, said) != (HTTPStatus.OK, "success"):
        raise SellerRefuses(
            f"{status} {said[:100]}"
        )  # the job's retry schedule says when to ask again
    return "told"


class SellerRefuses(Exception):
    """The seller has not said "success"."""

"""The shop's API."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated
from uuid import uuid4

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, PositiveInt

from delayqueue import Client

from .orders import NoSuchOrder, Order, Orders
from .tasks import NOTICE, TIMEOUT, UNPAID, OrderTimeout, PaymentNotice


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[dict[str, Client], None]:
    with Client() as queue:
        yield {"queue": queue}


app = FastAPI(title="Shop", lifespan=lifespan)


def the_queue(request: Request) -> Client:
    queue: Client = request.state.queue
    return queue


Queue = Annotated[Client, Depends(the_queue)]
Shelf = Annotated[Orders, Depends(Orders.of_the_shop)]


class NewOrder(BaseModel):
    """What a customer sends."""

    item: str
    cents: PositiveInt


@app.post("/orders", status_code=201)
def place(new: NewOrder, queue: Queue, orders: Shelf) -> Order:
    order = Order(uuid4().hex, new.item, new.cents)
    # the job first: one without an order does no harm, an order without a job would never be closed
    queue.push(TIMEOUT, OrderTimeout(order=order.id), id=f"timeout-{order.id}", delay=UNPAID)
    orders.add(order)
    return order


@app.get("/orders/{order_id}")
def show(order_id: str, orders: Shelf) -> Order:
    try:
        return orders.find(order_id)
    except NoSuchOrder:
        raise HTTPException(404, f"no order {order_id}") from None


@app.post("/orders/{order_id}/pay")
def pay(order_id: str, queue: Queue, orders: Shelf) -> Order:
    """The job of the timeout stays: it finds the order paid, and changes nothing."""
    order = show(order_id, orders)
    if order.state == "unpaid":
        # the job first again: its handler waits until the payment is booked, so no notice is lost
        notice = PaymentNotice(order=order.id, cents=order.cents)
        queue.push(NOTICE, notice, id=f"notice-{order.id}", retry="alipay")
        order = orders.settle(order_id, "paid")
    if order.state == "closed":
        raise HTTPException(409, f"order {order_id} is closed")
    return order

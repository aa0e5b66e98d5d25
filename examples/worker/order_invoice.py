"""What happens when an order is paid: an invoice, a page, a mail, the archive, each with what those before it returned.

Replaces a table of events and their handlers with a sort order, and the program that reads it.

delay-queue worker order_invoice:worker   does it; run as many as you like
python order_invoice.py paid ORDER        as JSON: {"order": 1001, "items": {"tea": 500}, "mail": "ann@example.org"}

If one fails, the others run all the same (stop_on_failure=False), and the attempt has failed. The next one begins with
the first again: each writes its file to $INVOICES, and writing it twice does no harm.

The queue is at $DELAYQUEUE_URL. $RETRY replaces the times between attempts.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from delayqueue import Client, Worker
from delayqueue.worker import HandledJob

FOLDER = Path(os.environ.get("INVOICES", "invoices"))
RETRY = os.environ.get("RETRY", "1s,10s,1m,10m").split(",")

worker = Worker()


def write_invoice(order: dict[str, Any]) -> str:
    """The invoice's number and sum."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    invoice = {"invoice": f"I-{order['order']}", "cents": sum(order["items"].values())}
    (FOLDER / f"{order['order']}.json").write_text(json.dumps(invoice))
    return json.dumps(invoice)


def print_invoice(order: dict[str, Any], job: HandledJob) -> str:
    """The page that the customer gets."""
    invoice = json.loads(job.results["write_invoice"].message)
    page = FOLDER / f"{order['order']}.txt"
    page.write_text(f"Invoice {invoice['invoice']}: {invoice['cents'] / 100:.2f}\n")
    return page.name


async def mail_invoice(order: dict[str, Any], job: HandledJob) -> str:
    """Fails if there is no address; somebody may write one into a file meanwhile."""
    address = order.get("mail") or (FOLDER / f"{order['order']}.address").read_text().strip()
    page = job.results["print_invoice"].message
    # yours: send it with the order as its key, so that no mail is sent twice
    (FOLDER / f"{order['order']}.mail").write_text(f"To: {address}\nWith: {page}\n")
    return f"sent to {address}"


def archive(order: dict[str, Any], job: HandledJob) -> str:
    """Runs last, even if the mail has failed, and notes who has succeeded."""
    done = [name for name, result in job.results.items() if result.succeeded]
    (FOLDER / f"{order['order']}.archive").write_text("\n".join(done))
    return f"{len(done)} of {len(job.results)} done"


worker.on(
    "order-invoice",
    [write_invoice, print_invoice, mail_invoice, archive],
    retry=RETRY,
    stop_on_failure=False,
)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["paid", order]:
            number = json.loads(order)["order"]
            Client().push("order-invoice", order, id=f"invoice-{number}", retain="1d")
        case _:
            sys.exit(__doc__)

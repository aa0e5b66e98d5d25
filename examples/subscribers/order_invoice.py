"""What happens when an order is paid: four handlers of one event, in the order 0, 10, 20, 100 of order_invoice.conf.

Replaces a table of events and handlers with a sort order and a status each.
Each one writes a file to $INVOICES, or to ./invoices.
"""

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("INVOICES", "invoices"))


def write_invoice(job: Any) -> str:
    """Order 0: the invoice's number and sum."""
    order = json.loads(job.body)
    FOLDER.mkdir(parents=True, exist_ok=True)
    invoice = {"invoice": f"I-{order['order']}", "cents": sum(order["items"].values())}
    path = FOLDER / f"{order['order']}.json"
    path.write_text(json.dumps(invoice))
    return f"{invoice['invoice']} of {invoice['cents']} cents"


def print_invoice(job: Any) -> str:
    """Order 10: the page that the customer gets; made from the file of order 0."""
    order = json.loads(job.body)
    invoice = json.loads((FOLDER / f"{order['order']}.json").read_text())
    page = FOLDER / f"{order['order']}.txt"
    page.write_text(f"Invoice {invoice['invoice']}: {invoice['cents'] / 100:.2f}\n")
    return page.name


async def mail_invoice(job: Any) -> str:
    """Order 20: fails if there is no address, and is retried on its schedule."""
    order = json.loads(job.body)
    address = order.get("mail") or (FOLDER / f"{order['order']}.address").read_text().strip()
    (FOLDER / f"{order['order']}.mail").write_text(f"To: {address}\n")
    return f"sent to {address}"


def archive(job: Any) -> str:
    """Order 100: runs last, even if the mail has failed."""
    order = json.loads(job.body)
    names = sorted(path.name for path in FOLDER.glob(f"{order['order']}.*"))
    (FOLDER / f"{order['order']}.archive").write_text("\n".join(names))
    return f"{len(names)} files"

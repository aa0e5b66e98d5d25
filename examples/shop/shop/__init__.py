"""A small shop: an API that takes orders and payments, and a worker for what happens later.

uvicorn shop.api:app                   takes orders; try http://localhost:8000/docs
delay-queue worker shop.tasks:worker   closes unpaid orders, notifies the seller of paid ones; run as many as you like

Both run in this folder. The queue is at $DELAYQUEUE_URL, the orders are in the file $SHOP, the seller is notified of
payments at $SELLER_URL. $UNPAID replaces the 30 minutes that a customer has to pay.
"""

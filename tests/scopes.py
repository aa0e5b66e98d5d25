"""Which topics a token reaches: cases that Python and the scripts must decide alike."""

from typing import Final

# entries of the scope, a topic, whether it is reached
SCOPES: Final = [
    (("orders",), "orders", True),
    (("orders",), "orders.eu", False),
    (("orders",), "order", False),
    (("orders",), "Orders", False),
    (("orders.*",), "orders.eu", True),
    (("orders.*",), "orders.", True),
    (("orders.*",), "orders", False),
    (("orders.*",), "ordersXeu", False),
    (("orders.*",), "my.orders.eu", False),
    (("a", "b*"), "bc", True),
    (("a", "b*"), "c", False),
    (("订单*",), "订单-退款", True),
    (("订单*",), "订", False),
    (('"\\*',), '"\\x', True),
    (("%a*",), "ab", False),
    (("[a]",), "a", False),
    (("a\nb*",), "a\nbc", True),
]

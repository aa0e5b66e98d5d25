import pytest

import payment_notification
from delayqueue import testing
from delayqueue.testing import Buried, Finished, Released
from delayqueue.worker import Verdict
from payment_notification import Answer, Notification

BODY = '{"trade": "T1", "url": "https://merchant.example/paid"}'


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(200, "success"), Finished()),
        (Answer(200, "fail"), Released("NotAccepted: 200 fail")),
        (Answer(500, "success"), Released("NotAccepted: 500 success")),
        (Answer(503, "busy", 120), Released("the merchant asks to wait", 120)),
        (Answer(503, "busy", 86400), Released("the merchant asks to wait", 3600)),
        (Answer(410, "gone"), Buried("the merchant has closed this address")),
    ],
)
def test_the_merchants_answer_decides(
    answer: Answer, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(notification: Notification) -> Answer:
        assert notification == Notification("T1", "https://merchant.example/paid")
        return answer

    monkeypatch.setattr(payment_notification, "call", call)
    assert testing.run(payment_notification.worker, "payment-notification", BODY) == verdict

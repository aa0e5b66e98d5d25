"""What a receipt says, and what is none."""

import pytest

from delayqueue.domain.receipt import nonce_of, receipt_for
from delayqueue.errors import Invalid

NONCE = "0123456789ab-1f"


def test_a_receipt_has_its_nonce() -> None:
    assert nonce_of(receipt_for(NONCE, "a"), "a") == NONCE


@pytest.mark.parametrize("nonce", ["", "-", "-0"])
def test_words_of_the_scripts_are_no_nonces(nonce: str) -> None:
    with pytest.raises(Invalid):
        nonce_of(receipt_for(nonce, "a"), "a")


@pytest.mark.parametrize(
    "receipt", ["", "-", NONCE, f"{NONCE}-", receipt_for(NONCE, "b"), f"{receipt_for(NONCE, 'a')}0"]
)
def test_what_is_no_receipt_of_the_job_is_refused(receipt: str) -> None:
    with pytest.raises(Invalid):
        nonce_of(receipt, "a")

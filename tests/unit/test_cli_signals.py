"""The signals that end a verb of the command line."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from delayqueue.cli.signals import Ended, hold_signals, raised_signals


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that ends a program, as a shell starts it."""
    former = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, former)


def test_a_signal_is_raised_within_the_block(number: signal.Signals) -> None:
    with pytest.raises(Ended) as ended, raised_signals():
        signal.raise_signal(number)
    assert ended.value.number == number
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_held_is_raised_when_it_is_let_go(number: signal.Signals) -> None:
    with raised_signals():
        hold_signals(hold=True)
        signal.raise_signal(number)
        with pytest.raises(Ended):
            hold_signals(hold=False)


def test_what_nohup_ignores_stays_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    with raised_signals():
        signal.raise_signal(number)


def test_another_thread_hears_no_signals() -> None:
    def run() -> None:
        with raised_signals():
            pass

    with ThreadPoolExecutor() as executor:
        executor.submit(run).result()

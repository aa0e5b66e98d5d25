"""A call of a verb in a bucket: the words that are sent, and what is known of it until it is answered."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

import hiredis

from delayqueue.store.scripts import Verb
from delayqueue.store.servers.durability import Requirement
from delayqueue.store.servers.functions import Functions
from delayqueue.store.servers.pipeline import Call, Wait
from delayqueue.store.servers.server import Server


class Terms(NamedTuple):
    """How a verb is called: as its head and the settings say."""

    verb: Verb
    functions: Functions
    sender: (
        str  # names this process; it is told what others announce, not what it has announced itself
    )
    wait: Wait | None
    requirements: Sequence[Requirement]


class VerbCall(Call):
    """The future has the script's Reply, or what `read` makes of it.

    Its exception is Unavailable, LayoutChanged or UnicodeEncodeError.
    """

    __slots__ = (
        "_args",
        "_ended",
        "_keys",
        "asked_s",
        "bucket",
        "follows",
        "generation",
        "read",
        "repeats",
        "server",
        "terms",
        "until_s",
        "words",
    )

    def __init__(
        self,
        terms: Terms,
        bucket: int,
        keys: Sequence[str],
        args: Sequence[Any],
        follows: bool,
        ended: Callable[["VerbCall", Any], None],
    ) -> None:
        """`ended` is called with the raw answer, or the error, of each attempt."""
        super().__init__()
        self.terms: Final = terms
        self.bucket: Final = bucket
        self.follows: Final = follows  # it means the same under another layout
        self.read: Callable[[Any], Any] | None = None  # makes the result of the reply
        self.repeats = 0
        # of the last attempt:
        self.server: Server | None = None
        self.words = "", ""  # the first two
        self.asked_s = 0.0  # monotonic
        self._keys = keys
        self._args = args
        self._ended = ended

    @property
    def tag(self) -> str:
        """The bucket's."""
        return self._keys[0]

    def begin(self, generation: int, answer_s: float) -> None:
        """Made now, it may be done for so long under this generation of the layout: `begin` in _call.lua."""
        self.generation, self.made_s = generation, monotonic()
        self.until_s = self.made_s + answer_s

    def attempt(self, server: Server) -> None:
        """Send it to this server."""
        terms = self.terms
        self.server, self.asked_s = server, monotonic()
        self.words = terms.functions.words(terms.verb.name, server)
        until_ms = server.clock.at_ms(self.until_s)
        control = f"{self.generation} {terms.sender}{' w' if terms.wait else ''}"
        try:
            self.packed = hiredis.pack_command(
                (*self.words, len(self._keys), *self._keys, *self._args, until_ms, control)
            )
        except UnicodeEncodeError as error:
            self.set_exception(error)
        else:
            server.pipeline(terms.wait).send(self)

    def settle(self, answer: Any) -> None:
        """Take the answer or the error of an attempt."""
        self._ended(self, answer)

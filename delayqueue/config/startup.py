"""The errors with which a server fails to start."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delayqueue.errors import Text

if TYPE_CHECKING:
    from delayqueue.config.config import Config


class StartupError(Exception):
    """The server cannot start. Each message is one line that names the problem and the fix.

    `key` is the option that it is about, "" for none.
    """

    def __init__(self, *messages: str, key: str = "") -> None:
        super().__init__("\n".join(messages))
        self.messages = messages
        self.key = key

    def lines(self, config: "Config | None") -> list[str]:
        """The messages, with the place where the option was set in that config."""
        place = config.places.get(self.key) if config else None
        return [f"{place}: {message}" if place else message for message in self.messages]


class StoreUnwell(StartupError):
    """The store cannot be used now. A server waits until it is well; everything else ends.

    `text` says what ails it, in words for everybody.
    """

    def __init__(self, message: str, text: Text, *, key: str = "") -> None:
        super().__init__(message, key=key)
        self.text: Text = text


class ConfigError(StartupError):
    """Invalid settings: a message for each, with file and line, or variable, and key.

    `rest` has the valid ones, and the defaults for everything else.
    """

    def __init__(self, mistakes: Iterable[str], rest: "Config") -> None:
        super().__init__(*mistakes)
        self.rest = rest

"""What is said when a server cannot start."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delayqueue.config.config import Config


class StartupError(Exception):
    """The server cannot start. Each message is one line that names the thing and the way out.

    `key` is the option that it is about, "" for none.
    """

    def __init__(self, *messages: str, key: str = "") -> None:
        super().__init__("\n".join(messages))
        self.messages = messages
        self.key = key

    def lines(self, config: "Config | None") -> list[str]:
        """The messages, with the place where somebody set the option in that config."""
        place = config.places.get(self.key) if config else None
        return [f"{place}: {message}" if place else message for message in self.messages]


class ConfigError(StartupError):
    """Settings that cannot be understood: a message for each, with file and line, or variable, and key.

    `rest` has what can be understood, and the defaults for all else.
    """

    def __init__(self, mistakes: Iterable[str], rest: "Config") -> None:
        super().__init__(*mistakes)
        self.rest = rest

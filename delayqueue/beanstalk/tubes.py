"""The tubes that connections of this process use or watch, and their counters."""

from collections import OrderedDict
from typing import Final

DEFAULT: Final = "default"
MOST_FORGOTTEN: Final = 10_000  # tubes that nobody uses or watches, but that have counters
# Of all connections together, about 80 MB; the first few of each connection are not counted.
MOST_WATCHED_TOGETHER: Final = 100_000
NOT_COUNTED: Final = 16


class Tube:
    """One tube. Every topic is a tube, whether a connection uses it or not."""

    __slots__ = ("deletes", "name", "pause_s", "pauses", "puts", "users", "watchers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0  # connections that use it
        self.watchers = 0  # connections that watch it
        # since the process started:
        self.puts = 0
        self.deletes = 0
        self.pauses = 0
        self.pause_s = 0  # the length of the last pause

    @property
    def is_in_use(self) -> bool:
        """Whether a connection refers to the tube."""
        return self.users + self.watchers > 0


class Tubes:
    """All tubes, by name."""

    def __init__(self) -> None:
        self._in_use: dict[str, Tube] = {}
        self.watched_beyond = 0  # tubes that connections watch, beyond the first few of each
        self._idle: OrderedDict[str, Tube] = OrderedDict()
        # jobs whose TTR expired while a connection held them, since the process started
        self.timeouts = 0
        self.default = self._in_use[DEFAULT] = Tube(DEFAULT)  # always exists

    def __getitem__(self, name: str) -> Tube:
        """The tube with this name, created if necessary; whoever refers to it calls `release` at the end."""
        tube = self._in_use.get(name)
        if tube is None:
            tube = self._in_use[name] = self._idle.pop(name) if name in self._idle else Tube(name)
        return tube

    def find(self, name: str) -> Tube | None:
        """The tube; None if no connection refers to it and nothing was counted for it."""
        return self._in_use.get(name) or self._idle.get(name)

    def count(self, name: str) -> Tube:
        """The tube, to count something for it: it is then remembered for a while."""
        tube = self.find(name)
        if tube is None:
            tube = self._idle[name] = Tube(name)
            if len(self._idle) > MOST_FORGOTTEN:
                self._idle.popitem(last=False)
        return tube

    def begin_watch(self, others: int) -> bool:
        """Count one more watch of a connection that watches `others` tubes. Returns whether it may."""
        if others >= NOT_COUNTED:
            if self.watched_beyond >= MOST_WATCHED_TOGETHER:
                return False
            self.watched_beyond += 1
        return True

    def end_watch(self, others: int) -> None:
        """Count the end of a watch; the connection still watches `others` tubes."""
        if others >= NOT_COUNTED:
            self.watched_beyond -= 1

    def names(self) -> list[str]:
        """The tubes that connections refer to."""
        return list(self._in_use)

    def release(self, tube: Tube) -> None:
        """A connection no longer refers to the tube."""
        if not tube.is_in_use and tube is not self.default:
            del self._in_use[tube.name]
            if tube.puts or tube.deletes or tube.pauses:
                self._idle[tube.name] = tube
                if len(self._idle) > MOST_FORGOTTEN:
                    self._idle.popitem(last=False)

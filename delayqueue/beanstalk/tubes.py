"""The tubes that connections of this process use or watch, and what was done with them."""

from collections import OrderedDict
from typing import Final

DEFAULT: Final = "default"
MOST_FORGOTTEN: Final = (
    10_000  # tubes that nobody uses or watches, but for which something was counted
)


class Tube:
    """One tube. A topic is a tube, whether somebody here uses it or not."""

    __slots__ = (
        "deletes",
        "name",
        "pause_s",
        "pauses",
        "puts",
        "users",
        "watchers",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0  # connections that use it
        self.watchers = 0  # that watch it
        # since the process started:
        self.puts = 0
        self.deletes = 0
        self.pauses = 0
        self.pause_s = 0  # of the last one

    @property
    def is_in_use(self) -> bool:
        """Whether a connection refers to it."""
        return self.users + self.watchers > 0


class Tubes:
    """All of them, by name."""

    def __init__(self) -> None:
        self._in_use: dict[str, Tube] = {}
        self._idle: OrderedDict[str, Tube] = OrderedDict()
        self.timeouts = (
            0  # jobs that a connection held until their TTR ran out, since the process started
        )
        self.default = self._in_use[DEFAULT] = Tube(DEFAULT)  # is always there

    def __getitem__(self, name: str) -> Tube:
        """The tube of this name, a new one if need be; who refers to it calls `release` at the end."""
        tube = self._in_use.get(name)
        if tube is None:
            tube = self._in_use[name] = self._idle.pop(name) if name in self._idle else Tube(name)
        return tube

    def find(self, name: str) -> Tube | None:
        """The tube, None if nobody refers to it and nothing was counted for it."""
        return self._in_use.get(name) or self._idle.get(name)

    def count(self, name: str) -> Tube:
        """The tube, to count something for it: it is remembered for that, for a while."""
        tube = self.find(name)
        if tube is None:
            tube = self._idle[name] = Tube(name)
            if len(self._idle) > MOST_FORGOTTEN:
                self._idle.popitem(last=False)
        return tube

    def names(self) -> list[str]:
        """Those that somebody refers to."""
        return list(self._in_use)

    def release(self, tube: Tube) -> None:
        """Somebody does not refer to the tube any more."""
        if not tube.is_in_use and tube is not self.default:
            del self._in_use[tube.name]
            if tube.puts or tube.deletes or tube.pauses:
                self._idle[tube.name] = tube
                if len(self._idle) > MOST_FORGOTTEN:
                    self._idle.popitem(last=False)

"""Which URLs a job may have called: those on public addresses, or only what `call_allow` lists."""

from collections.abc import Iterable

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.delivery.addresses import AddressGuard, Network, literal, unwrapped
from delayqueue.delivery.urls import host_of
from delayqueue.errors import BadValue

SETTING = "call_allow"


class CallGuard:
    """Knows the hosts that jobs may have called: names, "*.example.com" for all names below one, and networks.

    With none, these are all that are public. A listed name is called at public addresses, and at those in a listed
    network: what it resolves to is known only when a socket connects, which `addresses` checks.
    """

    def __init__(self, allowed: Iterable[str | Network]) -> None:
        allowed = tuple(allowed)
        self._names = tuple(entry for entry in allowed if isinstance(entry, str))
        self._networks = tuple(entry for entry in allowed if not isinstance(entry, str))
        self.addresses = AddressGuard(self._networks, SETTING)

    def check_url(self, url: str) -> str:
        """Check a URL. Raises BadValue if a job may not have it called. Looks nothing up."""
        host = host_of(url)
        self.addresses.check_host(host)
        if (self._names or self._networks) and not self._lists(host):
            raise BadValue(f"{SETTING} 未列出 {host}", f"{SETTING} does not list {host}")
        return url

    def _lists(self, host: str) -> bool:
        address = literal(host)
        if address is not None:
            forms = {address, unwrapped(address)}
            return any(form in network for form in forms for network in self._networks)
        return any(
            host.endswith(name[1:]) if name.startswith("*.") else host == name
            for name in self._names
        )


def check_declared_urls(config: Config) -> None:
    """Check the URLs of subscribers and of schedules' calls in the config file.

    Raises StartupError, which names each that is forbidden.
    """
    webhooks, guard = AddressGuard(config.webhook_allow), CallGuard(config.call_allow)
    wrong: list[str] = []
    for where, subscriber in config.declared.subscribers:
        try:
            webhooks.check_url(subscriber.url)
        except ValueError as error:
            wrong.append(f"{where}: url = {subscriber.url}: {error}")
    for where, schedule in config.declared.schedules:
        if schedule.call is None:
            continue
        if not config.calls:
            wrong.append(f"{where}: call: this server makes no calls; set calls = yes")
            continue
        try:
            guard.check_url(schedule.call.url)
        except ValueError as error:
            wrong.append(f"{where}: call = {schedule.call.url}: {error}")
    if wrong:
        raise StartupError(*wrong)

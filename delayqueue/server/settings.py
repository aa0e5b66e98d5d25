"""The settings of a server's processes: one process reads and checks them, and all use them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.config.config import Config
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import check_declared_calls
from delayqueue.domain.access import Grant
from delayqueue.store.topics import check_limits
from delayqueue.web.auth import all_grants
from delayqueue.web.proxy_login import ProxyLogins
from delayqueue.web.tls import Certificate


class Settings(NamedTuple):
    """A config with the contents of the files that it names, so that using it reads no file.

    `source`: what was read last, as the log names it. `revision` grows with each config.
    """

    config: Config
    grants: tuple[Grant, ...]
    certificate: Certificate | None
    source: str
    revision: int

    @classmethod
    def read(cls, config: Config, revision: int = 0) -> Self:
        """Read the files that the config names, and check everything. Raises StartupError if something is wrong."""
        AddressGuard(config.webhook_allow).check_declared(config.declared.subscribers)
        check_declared_calls(config)
        ProxyLogins.of(config)
        TubeAccess.of(config)
        check_limits(config.declared.limits, 1)  # what the number of buckets adds, the store tells
        source = str(config.file or "the environment")
        return cls(config, tuple(all_grants(config)), Certificate.of(config), source, revision)

    def watched(self) -> dict[tuple[Path, ...], Callable[["Settings"], "Settings"]]:
        """The files that are read again when they change, and for each group of them what reads it.

        That returns the settings that it is given with the new contents, or raises StartupError.
        """
        found: dict[tuple[Path, ...], Callable[[Settings], Settings]] = {}
        if self.config.auth_tokens_file:
            found[self.config.auth_tokens_file,] = Settings._with_tokens
        if self.certificate:
            found[self.certificate.files] = Settings._with_certificate
        return found

    def _with_tokens(self) -> Self:
        return self._replace(grants=tuple(all_grants(self.config)))

    def _with_certificate(self) -> Self:
        return self._replace(certificate=Certificate.of(self.config))

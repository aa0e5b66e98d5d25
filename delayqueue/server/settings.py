"""The settings of a server's processes: one process reads and checks them, and all use them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.delivery.call_guard import check_declared_urls
from delayqueue.domain.access import Grant
from delayqueue.store.topics import check_limits
from delayqueue.web.auth import all_grants
from delayqueue.web.proxy_login import ProxyLogins
from delayqueue.web.tls import Certificate

T = TypeVar("T")


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
        """Read the files that the config names, and check everything.

        Raises StartupError, with a line for each thing that is wrong, if something is.
        """
        wrong: list[str] = []

        def checked(check: Callable[[Config], T]) -> T | None:
            try:
                return check(config)
            except StartupError as error:
                wrong.extend(error.lines(config))
                return None

        grants, certificate = checked(all_grants), checked(Certificate.of)
        for check in (ProxyLogins.of, TubeAccess.of, check_declared_urls, _check_limits):
            checked(check)
        if wrong:
            raise StartupError(*wrong)
        source = str(config.file or "the environment")
        return cls(config, tuple(grants or ()), certificate, source, revision)

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


def _check_limits(config: Config) -> None:
    check_limits(config.declared.limits, 1)  # what the number of buckets adds, the store tells

"""Access control for beanstalkd's protocol, which itself has no names and no tokens."""

from typing import NamedTuple

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import EVERYWHERE, Scope


class TubeAccess(NamedTuple):
    """Access to tubes as derived from the settings."""

    loopback_only: bool
    scope: Scope
    most_bytes: int  # of a job's body

    @classmethod
    def of(cls, config: Config) -> "TubeAccess":
        """Raises StartupError if clients could reach what those of HTTP must log in for, or TLS is not set up."""
        if config.beanstalk_address and config.beanstalk_tls and not config.tls_cert:
            raise StartupError(
                "beanstalk_tls needs tls_cert; set it, or unset this", key="beanstalk_tls"
            )
        if config.beanstalk_address and config.requires_auth and not config.beanstalk_topics:
            raise StartupError(
                "beanstalk_address: its clients cannot say who they are, as those of HTTP must by a token or a login; "
                "name in beanstalk_topics what everybody may reach there (* is all), or unset it",
                key="beanstalk_address",
            )
        return cls(
            loopback_only=config.protected_mode,
            scope=Scope.of(config.beanstalk_topics) if config.beanstalk_topics else EVERYWHERE,
            most_bytes=min(config.beanstalk_max_job_size_bytes, config.max_body_bytes),
        )

"""Settings that take effect while a server runs, when their file changes."""

from dataclasses import replace
from typing import Final

from delayqueue.config.config import OPTIONS, Config
from delayqueue.config.startup import StartupError

# on SIGHUP a server applies these without a restart; the sections of the file, too
RELOADED: Final = frozenset(
    {
        "protected_mode",
        "auth_tokens",
        "auth_tokens_file",
        "token_rate",
        "proxy_user_header",
        "proxy_roles_header",
        "proxy_roles",
        "proxy_allow",
        "tls_cert",
        "tls_key",
        "queue_block_timeout",
        "strict",
        "require_delay",
        "language",
        "admin_title",
        "metrics_topics",
        "log_level",
        "log_format",
        "access_log",
        "beanstalk_topics",
        "beanstalk_max_job_size",
    }
)


def changed_to(config: Config, found: Config) -> tuple[Config, list[str]]:
    """`config` with those changes of `found` that take effect while a server runs, and the keys of the others.

    TLS cannot be switched on: connections are made for one of them. Raises StartupError if something that protects the
    server would end: an editor that has just emptied the file, or written half of it, must not let everybody in.
    """
    _refuse_less_protection(config, found)
    fixed = set(OPTIONS) - RELOADED
    if not config.tls_cert:
        fixed |= {"tls_cert", "tls_key"}
    left = [key for key in OPTIONS if key in fixed and config.value(key) != found.value(key)]
    return replace(found, **{OPTIONS[key].field: config.value(key) for key in left}), left


def _refuse_less_protection(config: Config, found: Config) -> None:
    gone = {
        f"{found.file} is empty": _is_set_in_file(config) and not _is_set_in_file(found),
        "no token would be left": config.has_tokens and not found.has_tokens,
        "neither a token nor a login would be left": config.requires_auth
        and not found.requires_auth,
        "TLS would end": config.tls_cert is not None and found.tls_cert is None,
        "protected_mode would end": config.protected_mode and not found.protected_mode,
    }
    lines = [f"{what}; only a restart does that" for what, applies in gone.items() if applies]
    if lines:
        raise StartupError(*lines)


def _is_set_in_file(config: Config) -> bool:
    """Whether the file has any setting or section."""
    in_file = any(place.startswith(f"{config.file}:") for place in config.places.values())
    return in_file or bool(config.sections and any(config.sections))

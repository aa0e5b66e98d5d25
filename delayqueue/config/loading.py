"""Reads the settings: the config file, overridden by environment variables."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from delayqueue.config import build, failpoint, ini, values
from delayqueue.config.config import (
    FILE_REDIS_HOST,
    FILE_REQUIRE_DELAY,
    FILE_STRICT,
    OPTIONS,
    VARIABLES,
    Config,
)
from delayqueue.config.mistakes import Mistake, Mistakes
from delayqueue.config.option import PREFIX, Option
from delayqueue.config.sections import read_sections
from delayqueue.config.startup import ConfigError
from delayqueue.domain.text import readable

# Kubernetes and Docker describe a service called "delayqueue" to its neighbours in such variables
SERVICE_LINK: Final = re.compile(
    rf"{PREFIX}(SERVICE_(HOST|PORT\w*)=.*|PORT_\d+_(TCP|UDP)\w*=.*|PORT=\w+://.*)"
)
# variables for the verbs that ask a server, for the relay, and one that is not meant for --help
NO_SETTINGS: Final = {
    build.VARIABLE,
    f"{PREFIX}URL",
    f"{PREFIX}TOKEN",
    f"{PREFIX}RELAY_DSN",
    failpoint.VARIABLE,
}
MOST_KEY_CHARS: Final = 64  # a longer one was meant to be another kind of line
# what other programs call it
SYNONYMS: Final = dict.fromkeys(
    ("port", "host", "addr", "address", "listen", "bind"), "bind_address"
)
STORES: Final = ("redis.url", "redis.sentinel", "redis.cluster", "redis.host")  # ways to name it
IN_URL: Final = ("redis.db", "redis.user", "redis.password")
SEE_HELP: Final = "see delay-queue --help-settings"


class _Setting(NamedTuple):
    """A value as the user wrote it; `place` is "FILE:LINE", `where` that and the key, or both the variable's name."""

    place: str
    where: str
    option: Option
    text: str


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The defaults, overridden by the file at `path`, overridden by the DELAYQUEUE_* variables in `environ`.

    An empty value counts as not given. Raises ConfigError with everything that is wrong.
    """
    mistakes = Mistakes()
    given: dict[str, Any] = {}
    settings: dict[str, _Setting] = {}
    if path is not None:
        given |= {"redis_host": values.redis_host(FILE_REDIS_HOST), "strict": FILE_STRICT}
        with mistakes.noted():
            top, *named = ini.read(path, mistakes)
            settings = _from_top(top, mistakes)
            given["sections"] = read_sections(named, mistakes)
    variables = _from_environment(environ, mistakes)
    if not variables.keys().isdisjoint(STORES):  # the file's store is another one then
        settings = {key: setting for key, setting in settings.items() if key not in STORES}
    settings |= variables
    if path is not None and "strict" not in settings:
        given["require_delay"] = FILE_REQUIRE_DELAY
    for _, where, option, text in settings.values():
        with mistakes.noted():
            given[option.field] = ini.parsed(
                where, text, option.parse, secret=option.secret, unit=option.unit
            )
    places = {key: setting.place for key, setting in settings.items()}
    config = Config(**given, places=places, file=path)
    with mistakes.noted():
        _check_store(settings, config)
    if mistakes.lines:
        raise ConfigError(mistakes.lines, config)
    return config


def _check_store(settings: Mapping[str, _Setting], config: Config) -> None:
    """Check that there is one store, and that neither a variable nor what is said about TLS is ignored."""
    stores = [settings[key] for key in STORES[:-1] if key in settings]
    for other in stores[1:]:
        raise Mistake(f"{other.where}: the store is {stores[0].where} already; remove one of them")
    if config.redis_url:
        _check_beside_url(settings)
    _check_tls(settings, config)


def _check_beside_url(settings: Mapping[str, _Setting]) -> None:
    """Check that no variable says what a URL says; in a file, as the original's is, such lines may stay."""
    for key in IN_URL:
        if key in settings and settings[key].place == OPTIONS[key].variable:
            raise Mistake(
                f"{settings[key].where}: {settings['redis.url'].where} says that; "
                "put it into the URL, or unset the variable"
            )


def _check_tls(settings: Mapping[str, _Setting], config: Config) -> None:
    encrypted = config.redis_tls and not config.embedded
    store, way_out = "the embedded store", "name another one, or set redis.tls = no"
    if config.redis_url:
        encrypted = urlsplit(config.redis_url).scheme == "rediss"
        store, way_out = settings["redis.url"].where, "let the URL begin with rediss://"
    if config.redis_tls and not encrypted:
        raise Mistake(f"{settings['redis.tls'].where}: {store} connects without TLS; {way_out}")
    for key in ("redis.tls_ca", "redis.tls_cert", "redis.tls_key"):
        if key in settings and not encrypted:
            raise Mistake(
                f"{settings[key].where}: needs TLS; set redis.tls = yes, or use rediss:// in redis.url"
            )


def _from_top(top: ini.IniSection, mistakes: Mistakes) -> dict[str, _Setting]:
    settings: dict[str, _Setting] = {}
    for line in top.lines:
        with mistakes.noted():
            _add(settings, line)
    return {key: setting for key, setting in settings.items() if setting.text}


def _add(settings: dict[str, _Setting], line: ini.Line) -> None:
    where, key, text = line
    if key not in OPTIONS:
        raise Mistake(f"{where}: {key}: unknown key; {_hint(key, OPTIONS)}")
    if key in settings:
        raise Mistake(f"{settings[key].where}: set again at {where}; keep one of them")
    settings[key] = _Setting(where, f"{where}: {key}", OPTIONS[key], text)


def _from_environment(environ: Mapping[str, str], mistakes: Mistakes) -> dict[str, _Setting]:
    settings = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or SERVICE_LINK.fullmatch(f"{name}={text}"):
            continue
        if name in NO_SETTINGS:
            continue
        if name not in VARIABLES:
            mistakes.lines.append(f"{name}: unknown variable; {_hint(name, VARIABLES)}")
        elif text != readable(text) and VARIABLES[name].parse is not values.file:
            mistakes.lines.append(f"{name}: must be UTF-8")
        elif text.strip():
            option = VARIABLES[name]
            settings[option.key] = _Setting(name, name, option, text.strip())
    return settings


def _hint(name: str, known: Iterable[str]) -> str:
    """Which of the known keys or variables may be meant."""
    folded = {_bare(key): key for key in known}
    if len(name) > MOST_KEY_CHARS:
        return SEE_HELP
    bare = _bare(name)
    close = [SYNONYMS[bare]] if bare in SYNONYMS else get_close_matches(bare, folded, n=1)
    return f"did you mean {folded[close[0]]}?" if close else SEE_HELP


def _bare(name: str) -> str:
    """The name without the prefix of all variables, which would make each resemble the others."""
    return name.lower().removeprefix(PREFIX.lower())


def meant_by_option(option: str) -> str:
    """The setting whose name is like an unknown option, such as `--port`; "" if there is none."""
    name = option.lstrip("-").replace("-", "_").lower()
    bare = SYNONYMS.get(name, name)
    for key, variable in zip(OPTIONS, VARIABLES, strict=True):
        if bare in {key, _bare(variable)}:
            return f"settings are no options: set {variable}, or {key} in the file of -c"
    return ""

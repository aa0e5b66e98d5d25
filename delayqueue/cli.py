"""The program `delay-queue`: arguments, verbs, exit statuses."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from delayqueue import __version__, log
from delayqueue.config import OPTIONS, PREFIX, Config, Option, StartupError, load
from delayqueue.server import open_redis, serve
from delayqueue.store.connect import durability_warnings
from delayqueue.store.layout import check_layout
from delayqueue.web.auth import Guard
from delayqueue.web.tls import Tls

INTERRUPTED: Final = 130  # as a shell says it of a program that Ctrl-C ended


class Verb(NamedTuple):
    """What stands behind a word of the command line; `failed` is its exit status on a StartupError."""

    run: Callable[[Config], None]
    help: str
    failed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status; what keeps the server from starting is one line."""
    asked = _parser().parse_args(arguments)
    verb = VERBS[asked.verb]
    config = None
    try:
        config = load(asked.config, os.environ)
        log.set_up(config.log_level, config.log_format)
        verb.run(config)
    except StartupError as error:
        place = config.places.get(error.key) if config else None
        sys.stderr.write(
            f"delay-queue: {log.one_line(f'{place}: {error}' if place else str(error))}\n"
        )
        return verb.failed
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _serve(config: Config) -> None:
    uvloop.run(serve(config))


def _check(config: Config) -> None:
    """Go through a start, but for listening. A warning is no reason not to start."""
    Guard.of(config)
    Tls.of(config)
    sys.stdout.write("ok: settings\n")
    warnings = uvloop.run(_try_store(config))
    sys.stdout.write("ok: store\n")
    for warning in warnings:
        sys.stdout.write(f"warning: {warning}\n")


async def _try_store(config: Config) -> list[str]:
    async with open_redis(config) as (redis, _):
        await check_layout(redis, config)
        return await durability_warnings(redis)


VERBS: Final = {
    "serve": Verb(_serve, "run the server; meant where no verb is given", failed=2),
    "check": Verb(_check, "try the settings and the store, say what is wrong", failed=1),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delay-queue",
        description="A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-c", dest="config", metavar="FILE", type=Path, help="config file")
    parser.add_argument("-v", "--version", action="version", version=__version__)
    parser.add_argument("verb", nargs="?", choices=VERBS, default="serve", help="see below")
    return parser


def _epilog() -> str:
    verbs = [f"  {name:<24}{verb.help}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "verbs:",
            *verbs,
            "",
            f"settings, in the file or as variables ({PREFIX}REDIS_HOST for redis.host) [default]:",
            *map(_described, OPTIONS.values()),
        ]
    )


def _described(option: Option) -> str:
    default = f" [{' '.join((option.default, option.unit)).strip()}]" if option.default else ""
    return f"  {option.key:<24}{option.help}{default}"

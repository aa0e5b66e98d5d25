"""The verb `check`: everything that a start checks, without a start."""

import os
from argparse import Namespace
from collections.abc import Callable

import uvloop

from delayqueue import log
from delayqueue.cli.subcommand import DONE, REFUSED, complain, say
from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.startup import ConfigError, StartupError
from delayqueue.server.declarations import check_sections
from delayqueue.server.ports import check_addresses
from delayqueue.server.settings import Settings
from delayqueue.server.tracing import check_tracing
from delayqueue.store.buckets import Buckets
from delayqueue.store.connect import connect, where_is
from delayqueue.store.durability import check_durability, replica_warnings
from delayqueue.store.embedded import (
    check_startable,
    check_unused,
    holds_store,
    place_of,
    running_in,
)
from delayqueue.store.health import alarms, durability_warnings
from delayqueue.store.layout import check_layout, check_writable, layout_warnings
from delayqueue.store.topics import check_limits
from delayqueue.store.watch import Marks
from delayqueue.web.proxy_login import proxy_warnings


def check(asked: Namespace) -> int:
    """Report all that is wrong with the settings and the store. Starts and writes nothing; servers may run.

    A warning does not prevent a start. The store is only asked if all settings are valid: it might be another one.
    """
    wrong: list[str] = []
    try:
        config, understood = load(asked.config, os.environ), True
    except ConfigError as error:
        config, understood = error.rest, False
        wrong += error.lines(None)
    log.set_up(config.log_level, config.log_format)
    for look in (Settings.read, check_tracing, check_addresses):
        wrong += _found(look, config)
    if not wrong:
        say("ok: settings")
    for warning in proxy_warnings(config):
        say(f"warning: {warning}")
    if understood:
        # both find a circle of limits
        wrong += [line for line in _found(_check_store, config) if line not in wrong]
    return complain(wrong, REFUSED) if wrong else DONE


def _found(look: Callable[[Config], object], config: Config) -> list[str]:
    """What this check finds wrong."""
    try:
        look(config)
    except StartupError as error:
        return error.lines(config)
    return []


def _check_store(config: Config) -> None:
    warnings, is_well, is_new = uvloop.run(_warnings(config))
    if is_well:
        say(f"ok: store{_place(config, is_new=is_new)}")
    for warning in warnings:
        say(f"warning: {warning}")


def _place(config: Config, *, is_new: bool) -> str:
    """Where the store is; of the embedded one that depends on the directory and the user if `data_dir` is not set."""
    new = ", a new one" if is_new else ""
    if config.embedded:
        return f"{new} in {place_of(config.data_dir)}"
    return f"{new} ({where_is(config, None)[1]})"


async def _warnings(config: Config) -> tuple[list[str], bool, bool]:
    """Warnings about the store, whether it takes jobs and keeps them, and whether it is new.

    An embedded one is asked if it runs; otherwise only whether it could start.
    """
    socket_path = None
    if config.embedded:
        data_dir = place_of(config.data_dir)
        check_startable(data_dir, config.redis_binary)
        socket_path = await running_in(data_dir)
        if socket_path is None:
            check_unused(data_dir)
            is_new = not holds_store(data_dir)
            if is_new:
                check_limits(config.declared.limits, config.bucket_size)
            return [], True, is_new
    async with connect(config, socket_path) as servers:
        await check_durability(servers, config)
        await check_writable(servers, config)
        stored = await check_layout(servers, config)
        await check_sections(servers, config)
        buckets = Buckets(config.bucket_name, config.queue_name, stored.layout)
        found = [alarm.en for alarm in await alarms(servers, buckets.tags)]
        if emptied := await Marks(servers, buckets).read():
            found.append(emptied.en)
        warnings = [
            *found,
            *layout_warnings(stored, config),
            *await durability_warnings(servers),
            *(warning.en for warning in await replica_warnings(servers, config)),
        ]
        return warnings, not found, stored.is_new

"""Retry schedules: what a client may ask for, and the list of delays that it stands for. Pure.

A job's schedule is a list of delays: after the first failed attempt it waits the first one, and so on; a failure after
the last one buries it. An empty list means no retries. The store knows only such lists; presets and formulas are
expanded when the job is pushed, so each job has its own jitter.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from delayqueue.errors import BadValue, shown

MAX_STEPS = 64
MAX_DELAY_MS = 2**31 * 1000
MAX_TEXT_CHARS = 64
FORMULA = ("base", "factor", "cap", "jitter")  # what changes only delays that are made by `max`

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")

# The intervals that Alipay and WeChat Pay publish for payment notifications: the first one comes at once, and a failed
# one is repeated after each of these, so Alipay sends 8 within 25 hours, and WeChat 16.
PRESETS = {
    "alipay": ("2m", "10m", "10m", "1h", "2h", "6h", "15h"),
    "wechat": (
        *("15s", "15s", "30s", "3m", "10m", "20m", "30m", "30m"),
        *("30m", "1h", "3h", "3h", "3h", "6h", "6h"),
    ),
}


def duration_ms(value: float | str) -> int:
    """A delay in milliseconds, from a number of seconds or a text such as "500ms", "15s", "2m", "1.5h", "1d".

    Raises BadValue if it is neither; the message says what a delay looks like.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip()) if len(value) <= MAX_TEXT_CHARS else None
        ms = float(match[1]) * _UNIT_MS[match[2]] if match else math.nan
    else:
        ms = value * 1000
    if not 0 <= ms <= MAX_DELAY_MS:
        raise BadValue(
            f'{shown(value)} 须为秒数或 "15s"、"2m"、"1h" 这样的文本，0 - 2^31秒',
            f'{shown(value)}: must be seconds or a text like "15s", "2m", "1h", 0 to 2^31 s',
        )
    return round(ms)


def expanded(given: Mapping[str, Any], random: Callable[[], float]) -> tuple[int, ...]:
    """The schedule with these fields of `retry`; of a formula, those that are missing have their defaults.

    `random` returns 0 <= x < 1. Raises BadValue if they are invalid.
    """
    _check_parts(given)
    if "delays" in given:
        return explicit(given["delays"])
    if "preset" in given:
        return preset(given["preset"])
    return exponential(
        steps=given["max"],
        base_ms=duration_ms(given.get("base", 1)),
        factor=given.get("factor", 2),
        cap_ms=duration_ms(given.get("cap", 86_400)),
        jitter=given.get("jitter", 0),
        random=random,
    )


def _check_parts(given: Collection[str]) -> None:
    """Raises BadValue unless a schedule with these fields is a list, a preset or a formula, and one of them only."""
    if len({"delays", "preset", "max"}.intersection(given)) != 1:
        raise BadValue("需要 delays、preset 或 max 之一", "give one of delays, preset, max")
    lost = [] if "max" in given else [part for part in FORMULA if part in given]
    if lost:
        raise BadValue(f"{lost[0]} 只能和 max 一起用", f"{lost[0]} goes with max")


def explicit(delays: Sequence[float | str]) -> tuple[int, ...]:
    """The schedule for a list of delays."""
    if len(delays) > MAX_STEPS:
        raise BadValue(f"最多{MAX_STEPS}次", f"{len(delays)} steps: must be at most {MAX_STEPS}")
    return tuple(duration_ms(delay) for delay in delays)


def preset(name: str) -> tuple[int, ...]:
    """The schedule with that name."""
    if name not in PRESETS:
        raise BadValue(
            f"preset 只能是 {'、'.join(PRESETS)}",
            f"{shown(name)}: must be one of {', '.join(PRESETS)}",
        )
    return explicit(PRESETS[name])


def exponential(
    *,
    steps: int,
    base_ms: int,
    factor: float,
    cap_ms: int,
    jitter: float,
    random: Callable[[], float],
) -> tuple[int, ...]:
    """`steps` delays: base, base*factor, base*factor^2, ..., capped at `cap_ms`, each moved by up to ±jitter of itself.

    `random` returns 0 <= x < 1.
    """
    if not 1 <= steps <= MAX_STEPS:
        raise BadValue(
            f"max 取值范围1 - {MAX_STEPS}", f"max {shown(steps)}: must be 1 to {MAX_STEPS}"
        )
    if not 1 <= factor <= 100:
        raise BadValue("factor 取值范围1 - 100", f"factor {factor:g}: must be 1 to 100")
    if not 0 <= jitter <= 1:
        raise BadValue("jitter 取值范围0 - 1", f"jitter {jitter:g}: must be 0 to 1")
    plain = (min(cap_ms, base_ms * factor**step) for step in range(steps))
    return tuple(
        min(round(delay * (1 + jitter * (2 * random() - 1))), MAX_DELAY_MS) for delay in plain
    )

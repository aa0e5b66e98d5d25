"""Row 27: half an hour of load while servers are killed and clients vanish."""

import asyncio
import time
from typing import Final

from bench.processes import open_files, resident_bytes
from faults.bed import MIB, Bed, Figures, judged, restart
from faults.history import FREEZE, THAW
from faults.load import Load, Shape
from faults.scenarios.clients import vanish
from tests.processes import QueueServer, StoreServer

LEVEL_BYTES: Final = 16 << 20
LEVEL_FILES: Final = 20
POLLS: Final = 50


async def long_run(bed: Bed, *, minutes: float) -> Figures:
    """Two servers: one is killed again and again, the memory of the other one must stay level."""
    store = bed.store()
    mortal, lasting = [await bed.server(store) for _ in range(2)]
    shape = Shape(longest_delay_s=3, ttr_s=3, pause_s=0.1)
    end_s = time.monotonic() + minutes * 60
    async with bed.load(mortal, lasting, shape=shape) as load:
        await load.until_finished(1000)
        await asyncio.sleep(min(60, minutes * 10))  # pools and caches have their size
        before = resident_bytes([lasting.pid]), open_files([lasting.pid])
        faults = 0
        while time.monotonic() < end_s:
            await _break_something(bed, load, mortal, lasting, store)
            await load.until_finished(50)
            faults += 1
        await asyncio.sleep(5)
        after = resident_bytes([lasting.pid]), open_files([lasting.pid])
        verdict = await judged(load, store)
    grown, more_files = after[0] - before[0], after[1] - before[1]
    assert grown < LEVEL_BYTES, f"memory grew by {grown / MIB:.0f} MiB"
    assert more_files < LEVEL_FILES, f"{more_files} more open files"
    return verdict.figures() | {
        "minutes": minutes,
        "faults": faults,
        "memory MiB": f"{before[0] // MIB} -> {after[0] // MIB}",
        "open files": f"{before[1]} -> {after[1]}",
    }


async def _break_something(
    bed: Bed, load: Load, mortal: QueueServer, lasting: QueueServer, store: StoreServer
) -> None:
    """One of the faults of rows 1 (none), 2, 7 and 13."""
    fault = bed.random.choice(["none", "kill the server", FREEZE, "clients vanish"])
    load.history.fault(fault)
    if fault == "none":
        await bed.pause(1, 5)
    elif fault == "kill the server":
        mortal.kill()
        await bed.pause(0, 2)
        await restart(mortal)
    elif fault == FREEZE:
        store.freeze()
        await bed.pause(0.5, 7)
        store.thaw()
        load.history.fault(THAW)
    else:
        # on another topic than the load, whose clients finish their jobs
        await asyncio.gather(*(vanish(bed, lasting, bed.topic) for _ in range(POLLS)))

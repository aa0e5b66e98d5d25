"""Made-up requests for every endpoint, from /openapi.json: python -m tests.fuzz [SEED]. `make fuzz` runs it.

An answer must be what the document says for its status: so no 500, no unknown status, no other shape.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.processes import Processes, QueueServer, StoreServer

NOT_CHECKED: Final = ",".join(
    [
        "negative_data_rejection",  # a refused request is answered with 200 and a code, as the original does
        # the original's endpoints also take PUT, PATCH and DELETE, which nobody should use
        "unsupported_method",
        "allow_header_conformance",
    ]
)
LONGEST_POLL_S: Final = 1
MANY: Final = 200


def served(processes: Processes, store: StoreServer) -> QueueServer:
    """A server whose polls do not wait for long."""
    return processes.server(store, queue_block_timeout=LONGEST_POLL_S, language="en")


def fuzz(url: str, *, examples: int, phases: str, seed: int) -> subprocess.CompletedProcess[str]:
    """Run schemathesis against a server; it prints what is wrong and how to repeat it."""
    program = Path(sys.executable).with_name("schemathesis")
    options = [f"--max-examples={examples}", f"--phases={phases}", f"--seed={seed}"]
    return subprocess.run(
        [program, "run", f"{url}/openapi.json", f"--exclude-checks={NOT_CHECKED}", *options],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def main(seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            server = served(processes, processes.redis())
            done = fuzz(server.url, examples=MANY, phases="examples,coverage,fuzzing", seed=seed)
        finally:
            processes.close()
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 1))

"""The server; at its end it prints how many objects the garbage collector had to visit."""

import atexit
import gc
import sys

from delayqueue.cli import main

if __name__ == "__main__":
    atexit.register(lambda: sys.stderr.write(f"objects: {len(gc.get_objects())}\n"))
    sys.exit(main())

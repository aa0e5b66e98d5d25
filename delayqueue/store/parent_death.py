"""Run a program that dies with its parent: python parent_death.py PARENT_PID PROGRAM ARGUMENT...

This is a program of its own because the alternative, Python code between fork and exec, can deadlock. The kernel kills
the program when the *thread* that started this one ends, in whatever way. Systems other than Linux have no such signal;
there the program may outlive a parent that was killed.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.umask(0o077)  # its files are for this user only, even in a directory that others can read
    if os.getppid() != parent:  # the parent died before the kernel was told
        sys.exit(f"process {parent} is gone")
    try:
        os.execv(program[0], program)  # noqa: S606  # no shell is wanted
    except OSError as error:
        sys.exit(f"{program[0]}: {error.strerror}")


if __name__ == "__main__":
    main()

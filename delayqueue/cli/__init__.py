"""The program `delay-queue`."""

from delayqueue.cli.program import main

__all__ = ["main"]

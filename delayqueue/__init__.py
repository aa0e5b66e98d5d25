"""A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey."""

__version__ = "0.1.0"

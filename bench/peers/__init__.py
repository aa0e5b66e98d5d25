"""Beside what people would take instead: python -m bench.peers."""

"""The benchmark: measures any server that speaks the five original endpoints, and ours in full."""

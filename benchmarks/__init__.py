"""Benchmarks: equality first, then time. `python -m benchmarks NAME`."""

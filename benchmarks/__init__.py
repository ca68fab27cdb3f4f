"""Benchmarks: each command reproduces the figures it prints and adds them to the ledger."""

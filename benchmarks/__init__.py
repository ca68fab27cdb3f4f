"""Benchmarks: each command prints reproducible figures and appends them to the ledger."""

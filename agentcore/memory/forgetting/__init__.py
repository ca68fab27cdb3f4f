"""Forgetting use cases: removal, archive and restore, erasure."""

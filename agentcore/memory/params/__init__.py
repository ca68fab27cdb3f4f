"""Params and results of every `memory.*` method: the contract. Unknown fields raise errors."""

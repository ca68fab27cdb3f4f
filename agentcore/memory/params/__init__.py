"""Params and results of every `memory.*` method: the contract, refusing unknown fields by name."""

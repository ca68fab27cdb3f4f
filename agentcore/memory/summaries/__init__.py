"""Pure functions for summaries: clustering, extraction, checking a model's text."""

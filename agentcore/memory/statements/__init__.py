"""Parses statements from sentences and decides whether one supersedes another. Pure."""

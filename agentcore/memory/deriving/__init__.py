"""Derives memories: summaries of sessions, periods and clusters, facts, links between messages."""

"""Forgetting, as stories: removal, the archive and the way back, erasure."""

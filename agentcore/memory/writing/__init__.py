"""Writing, as stories: memories are stored and changed, names and rules set."""

"""What a sentence states, and whether another takes its place. Pure."""

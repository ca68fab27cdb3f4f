"""Read use cases: searches, and contexts built from their hits."""

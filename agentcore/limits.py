"""Limits on what one caller can make the service do."""

# Combining marks (Unicode non-starters) in a row; a joiner breaks longer runs before normalization (UAX #15).
MAX_MARK_RUN = 30

"""The console: pages over the same methods that every client calls, at /console."""

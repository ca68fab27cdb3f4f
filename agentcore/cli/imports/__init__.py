"""Parsers of other systems' exports: one file per format, listed in `FORMS` of `run`."""

"""Parsers of other systems' exports: listed in `FORMS` of `run`."""

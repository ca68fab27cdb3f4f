"""Scripts that create the package's data files from this repository's own sets."""

"""Scripts that make the data files of the package from this repository's own sets."""

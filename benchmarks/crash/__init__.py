"""Parts of the crash benchmarks: the served home, the stream of writes, the verdict on the remaining data."""

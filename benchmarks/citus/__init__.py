"""A Citus cluster on this machine, for tests and benchmarks outside CI."""

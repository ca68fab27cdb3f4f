"""Parts of the benchmark of many processes: the processes, the traffic, the leader, the verdict."""

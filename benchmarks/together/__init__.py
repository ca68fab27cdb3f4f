"""What the benchmark of many processes is made of: the processes, the traffic, who leads, the verdict."""

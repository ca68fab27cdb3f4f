"""Background work over all agents: one file a duty, one leader among many processes."""

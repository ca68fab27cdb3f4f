"""Background work over all agents: one topic a module, one leader among many processes."""

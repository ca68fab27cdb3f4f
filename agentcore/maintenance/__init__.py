"""Background work over all agents."""

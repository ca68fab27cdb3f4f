"""Memory for agents."""

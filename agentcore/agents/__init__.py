"""Memory for agents: tools for the model, prefetch for the first turn, and a base class to subclass."""

"""Write use cases: store and change memories, configure names and rules."""

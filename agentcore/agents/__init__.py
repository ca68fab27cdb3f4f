"""What an agent gets memory by: tools for its model, a first look, a class to subclass."""

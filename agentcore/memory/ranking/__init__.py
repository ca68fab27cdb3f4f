"""What a ranking is made of, beside the ranking itself (`retrieval`). Pure."""

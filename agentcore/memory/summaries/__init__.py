"""What summaries are made of, and what they are held to. Pure."""

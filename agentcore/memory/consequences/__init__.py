"""Side effects of storing, changing or deleting a memory on other memories, in the same transaction."""

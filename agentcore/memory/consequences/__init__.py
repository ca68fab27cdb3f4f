"""What storing, changing or removing a memory means for others, in the same transaction."""

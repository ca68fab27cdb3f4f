"""What a text consists of and what it is worth, read by rules alone: words, sentences, names, times. Pure."""

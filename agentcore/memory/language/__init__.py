"""What a text consists of, read by rules alone: words, sentences, names, times. Pure."""

"""Rule-based text analysis: words, sentences, names, times, rejection of worthless text. Pure."""

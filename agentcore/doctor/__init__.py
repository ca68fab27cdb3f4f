"""The doctor: looks at each part, says what it found, and how to mend what is wrong. It changes nothing."""

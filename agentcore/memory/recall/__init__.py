"""Reading, as stories: searches, and the contexts made of what they find."""

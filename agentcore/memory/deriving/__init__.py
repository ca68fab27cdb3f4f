"""What is made of memories later, as stories: summaries of sessions, periods and episodes, and facts."""

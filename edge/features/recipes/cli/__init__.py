"""Commands that check and edit recipes."""

"""The computer that the gateway runs on: which board it is, what it says of itself, and what it needs in its files."""

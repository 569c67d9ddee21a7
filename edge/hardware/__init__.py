"""The computer that the gateway runs on: which board it is, whether it is fit, and what it needs in its files."""

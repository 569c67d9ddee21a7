"""`edge rules`: checks, shows and runs rules."""

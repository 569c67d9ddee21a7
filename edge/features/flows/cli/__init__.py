"""`edge flows`: check, try and describe flows."""

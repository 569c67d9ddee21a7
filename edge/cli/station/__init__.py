"""`edge station`: what a station may use."""

"""Open sessions with the world outside: one file per protocol, no knowledge of what is said over them."""

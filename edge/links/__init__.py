"""Open sessions with the world outside: each over one protocol, without knowledge of what is said over them."""

"""`edge dead-letters`: work that failed too often."""

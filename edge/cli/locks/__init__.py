"""`edge locks`: shows who holds what, holds a lock for a command, and deletes locks of dead owners."""

"""`edge tags`: shows tags and their samples."""

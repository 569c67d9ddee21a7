"""What survives a power cut: documents, streams and timers in Redis, changed by one script."""

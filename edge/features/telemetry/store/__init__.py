"""What telemetry keeps in the store."""

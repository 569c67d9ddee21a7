"""Rules as people write them, and what the HTTP API states of alarms and tags."""

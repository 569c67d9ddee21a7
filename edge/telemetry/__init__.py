"""Tags and samples: sources, the stream, rules evaluated in one commit each, alarms."""

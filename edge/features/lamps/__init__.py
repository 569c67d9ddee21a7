"""Stack lights on GPIO that show alarms."""

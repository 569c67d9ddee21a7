"""Commands for alarms, rules and tags."""

"""Tags, rules and alarms at work: samples are queued, evaluated, and become changes of alarms."""

"""What the evaluation of rules keeps in Redis."""

from edge.store.keys import OURS, key, key_of

telemetry_state = key(
    "hash", "telemetry:state", OURS, "The states of rules, by rule and subject, and of the jobs that run"
)
telemetry_window = key_of(
    "list",
    "telemetry:window:{digest}",
    OURS,
    "The window of a baseline rule for a subject, the oldest sample first",
)

"""What prompts keep in Redis."""

from edge.store.keys import BACKLOG, key_of

prompts = key_of(
    "hash",
    "prompts:{scope}",
    BACKLOG,
    "The prompts of a scope whose opening or end is not published to the MES yet, by their ids",
)

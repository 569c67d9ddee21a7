"""What signed commands keep in Redis."""

from typing import Final

from edge.store.keys import OURS, key, key_of, key_of_two

COMMAND: Final = "until the command expires"
COMMAND_RESULT: Final = "8 days after the last result"

fleet_keys = key(
    "hash", "keys", OURS, 'The public keys of administrators as JSON Web Keys, with `[fleet] keys_from = "store"`'
)
fleet_commands = key("hash", "commands", COMMAND, "The signed commands for the components on this store, by their ids")
fleet_results = key_of(
    "hash", "commands:{id}", COMMAND_RESULT, "The results of a signed command, by component, as JSON"
)
fleet_executed = key_of_two(
    "string",
    "executed:{component}:{mark}",
    COMMAND,
    "The mark that a component has executed or refused a signed command",
)
fleet_executing = key_of("hash", "executing:{component}", OURS, "The signed commands that a component executes now")

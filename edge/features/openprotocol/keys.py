"""What gateways share in Redis that connect to one controller."""

from edge.store.keys import OURS, key_of, key_of_two

lease_equipment = key_of(
    "hash",
    "lease:equipment:{place:part}",
    OURS,
    "The instances that connect to equipment at a place, each for as long as its own lease",
)
passed_commands = key_of_two(
    "list",
    "passed-commands:{consumer}:{place:part}",
    OURS,
    "The commands that other instances pass to the one that connects to equipment",
)

"""What a strict Open Protocol controller takes, by the specification, and what makes do differently."""

from collections.abc import Mapping
from dataclasses import dataclass, field

REVISION = 97


@dataclass
class Quirks:
    """What makes do differently; the default is the specification.

    `newest_start`: the newest revision of 0001 that it accepts; a newer one is declined with `start_error`, after which
    it may close the connection (`closes`), or not answered (`silent`), or answered in its own newest one (`own`).
    `greeting` overwrites fields of 0002, `greeting_length` cuts it. `newest_result` is that of 0060, declined with
    `result_error`. `refused` maps messages to the error that declines them; `unanswered` are never answered.
    `names_request`: 0005 to 0008 carries 0008. `link`: it offers sequence numbers. `latency` delays each message in
    both directions by seconds; `pieces`: it sends frames in pieces of that many bytes. `resends`: it sends a result
    that was not acknowledged again at the next subscription. `clients` is the most that it serves. `station` is that
    of its headers, 0 for blanks. Old results in `unanswered_results` are not answered, those in `late_results` after so
    many seconds the first time.
    """

    newest_start: int = 6
    start_error: int = REVISION
    closes: bool = False
    silent: bool = False
    own: bool = False
    greeting: Mapping[str, int | str] = field(default_factory=dict)
    greeting_length: int | None = None
    newest_result: int = 6
    result_error: int = REVISION
    refused: Mapping[int, int] = field(default_factory=dict)
    unanswered: frozenset[int] = frozenset()
    names_request: bool = False
    link: bool = False
    latency: float = 0.0
    pieces: int = 0
    resends: bool = False
    clients: int = 5
    spindles: int = 0
    points: int = 0
    ack_seconds: float = 3.0
    station: int = 0
    unanswered_results: frozenset[int] = frozenset()
    late_results: dict[int, float] = field(default_factory=dict)
    silence: float = 15.0


SUBSCRIPTIONS = {
    14: (15, 1, 13),
    34: (35, 2, 18),
    51: (52, 2, 6),
    60: (61, 6, 9),
    70: (71, 1, 11),
    100: (101, 1, 33),
    216: (217, 1, 84),
}
"""Subscription → the message that it is for, its newest revision, the error of a second one."""
ENDS = {17: 15, 37: 35, 54: 52, 63: 61, 73: 71, 103: 101, 219: 217}
"""End of a subscription → the message that it was for."""
COMMANDS: dict[int, tuple[int, Mapping[int, int]]] = {
    18: (1, {1: 3}),
    19: (1, {1: 5}),
    20: (1, {1: 3}),
    38: (2, {1: 2, 2: 4}),
    39: (2, {1: 2, 2: 4}),
    42: (1, {}),
    43: (1, {}),
    50: (1, {1: 25}),
    78: (1, {}),
    82: (1, {1: 19}),
    127: (1, {}),
}
"""Command → its newest revision, the length of its data by revision."""
REQUESTS: dict[int, tuple[int, Mapping[int, int]]] = {
    10: (1, {}),
    12: (1, {1: 3}),
    30: (2, {}),
    40: (1, {}),
    64: (6, dict.fromkeys(range(1, 7), 10)),
    80: (1, {}),
}

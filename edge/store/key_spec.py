"""Describes the keys in Redis: type, lifetime and pattern of each kind, and how an id becomes a part of a key."""

import functools
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct


class Lifetime(StrEnum):
    """How long a key lives."""

    PERMANENT = "until the MES or, of jobs, the retention removes it or its last member"
    OURS = "as long as the store; does not grow with the jobs that ran"
    JOB = "as long as the job order, which goes `[retention] ended_jobs` after its EndState, or beyond `kept_jobs`"
    DEDUPE = "`[retention] dedupe`"
    MARKS = "each entry `[retention] dedupe`"
    AUDITED = "50 hours after the last was added"
    DISCARDED = "an hour after the last was added"
    REPUBLISH = "an hour"
    STREAM = "bounded by length"
    BACKLOG = "each entry until its work is done"
    DEAD_LETTERS = "`[retention] dead_letters` after the last was added"
    REPORT = "a day after it was written last"
    FLOW = "until the flow is deleted"
    CYCLE = "7 days after its end, as far as `[flows] kept_mb` allows; or `[flows] kept_cycles` later cycles"
    NODE_TASK = "24 hours after the end of its cycle, and no longer than the cycle"
    ATTEMPT = "24 hours after it was written last, and no longer than its cycle"
    WORKER = "60 seconds after the last heartbeat"
    LOGIN = "15 minutes after the wait of the last failed login; 10 minutes for a used code, a day for wrong codes"
    RECOVERY = "until the user gets other recovery codes or is removed"
    COMPONENT = "each entry 30 days after the last heartbeat, or as `edge fleet forget --after-days` sets"
    COMMAND = "until the command expires"
    COMMAND_RESULT = "8 days after the last result"
    SESSION = "a minute after its gateway has last renewed it; of a command `[users] session`"


KeyType: TypeAlias = Literal["hash", "list", "set", "stream", "string", "zset"]

_Build = TypeVar("_Build", bound=Callable[..., str])
BUILDERS: list[tuple[Callable[..., str], KeyType, Lifetime]] = []


def register_key(type: KeyType, lifetime: Lifetime) -> Callable[[_Build], _Build]:
    """Register a method that builds keys; `key_specs` and the reference list them with its docstring as their purpose.

    The method itself stays unchanged, so a call costs nothing more.
    """

    def enter(build: _Build) -> _Build:
        BUILDERS.append((build, type, lifetime))
        return build

    return enter


class KeySpec(Struct, frozen=True):
    """One kind of key; `pattern` is what follows the prefix, `name` is the method of Keys that builds it."""

    name: str
    pattern: str
    type: KeyType
    lifetime: Lifetime
    purpose: str

    def expression(self) -> re.Pattern[str]:
        """Return what fits the names of such keys, without their prefix."""
        return re.compile(re.sub(r"\\{\w+\\}", "(?s:.+)", re.escape(self.pattern)))


_NUMBER_INSIDE = re.compile(r"_\d+_")


def node_task_id(flow: str, cycle: int, node: str) -> str:
    """Return the id of a node task, which is a part of its keys."""
    return f"{key_part(flow)}_{cycle}_{key_part(node)}"


@functools.lru_cache(maxsize=1024)
def key_part(id: str) -> str:
    """Return an id as one part of a key: no two flows, cycles and nodes share a key, whatever their ids are."""
    quoted = id.replace("%", "%25").replace(":", "%3A")
    return quoted.replace("_", "%5F") if _NUMBER_INSIDE.search(f"{quoted}_") else quoted

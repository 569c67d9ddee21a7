"""Sorts the errors of Redis by what the caller does next: retry, correct the settings, or report a defect."""

from edge.foundation.errors import Defect, EdgeError, Unavailable

ADVICE_START = "Start the Redis server, or correct [redis] url."


class AccessDenied(Unavailable):
    """The server refuses our user or a command: at the start a fault of the settings, later possibly temporary."""


class OutOfMemory(Unavailable):
    """The server has reached its memory limit: commands that need memory are refused until some is freed."""


class GroupExists(Unavailable):
    """A consumer group exists already."""


def error_of_reply(reply: str) -> EdgeError:
    """Return the error for an error reply of the server, by its first word."""
    match reply.partition(" ")[0]:
        case "WRONGPASS" | "NOAUTH":
            return AccessDenied(
                f"Redis refuses our password: {reply}", "Set [redis] password or password_file to that of the server."
            )
        case "NOPERM":
            advice = "Allow the user in [redis] url all commands on keys and channels that begin with [redis] prefix."
            return AccessDenied(f"our user may not do what we must in Redis: {reply}", advice)
        case "OOM":
            advice = "Raise `maxmemory` of the Redis server or shorten [retention]."
            return OutOfMemory(f"Redis is out of memory: {reply}", advice)
        case "READONLY":
            return Unavailable(f"Redis is a read-only replica: {reply}", "Point [redis] url at the primary server.")
        case "LOADING":
            return Unavailable(f"Redis does not answer: {reply}", ADVICE_START)
        case "MASTERDOWN" | "BUSY":
            return Unavailable(f"Redis cannot serve now: {reply}", "Read the log of the Redis server.")
        case "MISCONF" | "NOREPLICAS":
            return Unavailable(f"Redis cannot serve now: {reply}", "Read the log of the Redis server (disk full?).")
        case "BUSYGROUP":
            return GroupExists(f"a consumer group exists already: {reply}")
        case "NOGROUP" | "UNBLOCKED":
            return Unavailable(f"a consumer group came or went: {reply}", "Find out who empties the Redis database.")
        case "ERR" if "AUTH" in reply:
            return AccessDenied(f"Redis refuses our password: {reply}", "Correct [redis] password and the user in url.")
        case _:
            return Defect(f"Redis refuses a command of ours: {reply}", "Report this with the log.")

"""Raises the errors of redis-py, which reads the Redis of another system, as ours."""

import contextlib
from collections.abc import Iterator

from redis import exceptions

from edge.foundation.errors import EdgeError, Unavailable
from edge.store.errors import ADVICE_START, error_of_reply


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise the errors of redis-py as ours."""
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        raise _translate(error) from error


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.AuthenticationError, "WRONGPASS"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.MasterDownError, "MASTERDOWN"),
)
"""redis-py cuts the first word off these errors."""


def _translate(error: Exception) -> EdgeError:
    # The reply of the server to the greeting is wrapped in a connection error.
    reply = error.__cause__ if isinstance(error.__cause__, exceptions.AuthenticationError) else error
    for kind, code in _CODES:
        if isinstance(reply, kind):
            return error_of_reply(f"{code} {reply}")
    if isinstance(reply, exceptions.ConnectionError | exceptions.TimeoutError | exceptions.InvalidResponse | OSError):
        return Unavailable(f"Redis does not answer: {str(reply) or 'no reply in time'}", ADVICE_START)
    return error_of_reply(str(reply))

"""Translates the errors of the network and of asyncua into our own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from asyncua import ua

from edge.errors import Unavailable


@contextmanager
def translate_errors(failure: str, advice: str = "Is it running?") -> Iterator[None]:
    """Raise Unavailable, as "{failure}: {reason}", when the network or the server fails inside the block."""
    try:
        yield
    except asyncio.CancelledError:
        # asyncua may raise a CancelledError that holds a result (wait_for2): a TaskGroup treats it as an error.
        raise asyncio.CancelledError from None
    except (OSError, ua.UaError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise Unavailable(f"{failure}: {reason}", advice) from error

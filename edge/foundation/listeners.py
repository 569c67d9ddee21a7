"""Calls listeners, each isolated from the failures of the others and of the caller."""

from collections.abc import Awaitable, Callable, Iterable
from typing import ParamSpec

import structlog

logger = structlog.get_logger(__name__)

_P = ParamSpec("_P")


def notify(listeners: Iterable[Callable[_P, None]], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call every listener; one that fails is logged and affects neither the others nor the caller."""
    for listener in tuple(listeners):
        try:
            listener(*args, **kwargs)
        except Exception:
            # What is reported has happened already: a failing listener must not undo or hide it.
            logger.exception("listener failed", listener=_name_of(listener))


async def notify_async(listeners: Iterable[Callable[_P, Awaitable[None]]], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call every listener in turn and wait for it; one that fails is logged and affects no other."""
    for listener in tuple(listeners):
        try:
            await listener(*args, **kwargs)
        except Exception:
            # What is reported has happened already: a failing listener must not undo or hide it.
            logger.exception("listener failed", listener=_name_of(listener))


def _name_of(listener: object) -> str:
    return getattr(listener, "__qualname__", type(listener).__name__)

"""A read of the store as a value: several of them share one round trip."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from edge.store.pipeline import Argument

T = TypeVar("T")


class Query(Struct, Generic[T], frozen=True):
    """Commands that read, and the function that returns the value of their replies."""

    commands: Sequence[Sequence[Argument]]
    value: Callable[..., T]


def query(value: Callable[..., T], *command: Argument) -> Query[T]:
    """Return a query of one command."""
    return Query((command,), value)

"""How the tests call a command on the store of a test."""

from collections.abc import Awaitable, Callable

from click.testing import Result

Edge = Callable[..., Awaitable[Result]]
"""Takes the arguments of `edge` and, as `given`, its standard input; gives its end."""

Offline = Callable[..., Result]
"""Takes the arguments of `edge` where no store answers; gives its end."""

"""What every scene of the demo needs: the command line of its parts, a deadline that a failed part ends, waiting."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from edge.foundation.errors import Unavailable

# On a small board, a device with an OPC UA server starts slowly; in qemu on a busy machine everything does.
DEADLINE_SECONDS = 900.0
_POLL_SECONDS = 0.02

GiveUp: TypeAlias = Callable[[Unavailable], None]


def edge_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of `edge`; -P ignores a module of this name in the current directory."""
    return (sys.executable, "-P", "-m", "edge", *arguments)


def scene_settings(directory: Path, broker: str, scope: str) -> str:
    """Return the settings that the gateways of all scenes share; strings are the same in JSON and in TOML."""
    text = partial(json.dumps, ensure_ascii=False)
    return f"""\
[gateway]
name = "demo"
scopes = [{text(scope)}]

[redis]
url = {text(f"embedded:{directory / 'store'}")}

[station]
files = ""

[mqtt]
url = {text(broker)}

[opcua]
endpoint = ""
"""


class DemoLimit:
    """The time limit of a demo; `give_up` ends the demo at once with the failure of a part."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self.failure: Unavailable | None = None
        self._timeout = timeout

    def give_up(self, failure: Unavailable) -> None:
        """End the demo; the first failure is its reason."""
        self.failure = self.failure or failure
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def lift(self) -> None:
        """Remove the time limit of a finished demo."""
        self._timeout.reschedule(None)


@asynccontextmanager
async def limit_demo() -> AsyncIterator[DemoLimit]:
    """Limit the block to DEADLINE_SECONDS; raises Unavailable with the first failure of a part, or for the time."""
    limit = None
    try:
        async with asyncio.timeout(DEADLINE_SECONDS) as timeout:
            limit = DemoLimit(timeout)
            yield limit
    except TimeoutError:
        if limit and limit.failure:
            raise limit.failure from None
        raise Unavailable(f"the demo did not come to its end within {DEADLINE_SECONDS:.0f} s") from None


async def wait_until(condition: Callable[[], bool | Awaitable[bool]], seconds: float) -> bool:
    """Wait for a condition for at most `seconds`; return whether it became true."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return True
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_POLL_SECONDS)

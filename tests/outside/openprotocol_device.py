"""Runs the strict Open Protocol controller in a thread of its own, concurrently with a gateway."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

_START_SECONDS = 30.0


@contextmanager
def running_controller(quirks: Quirks, habits: Habits) -> Iterator[StrictController]:
    """Run a controller for the length of the block; a test changes its quirks and habits, and reads its logs."""
    strict_controllers: list[StrictController] = []
    listening, ends = threading.Event(), threading.Event()

    async def serve() -> None:
        async with open_strict_controller(quirks, habits) as controller:
            strict_controllers.append(controller)
            listening.set()
            await asyncio.to_thread(ends.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert listening.wait(_START_SECONDS), "the controller does not listen"
    try:
        yield strict_controllers[0]
    finally:
        ends.set()
        thread.join(_START_SECONDS)

"""A stack light keeps the contract of all equipment, with a slow chip."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import pytest

from edge.features.lamps.equipment import open_stacklight
from edge.features.lamps.lines import Lines
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.errors import Refused, Unavailable
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, Bench, Contract, Opener
from tests.equipment.recording_station import RecordingStation

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = StackLightSettings(kind="stacklight", type_ids=(TYPE_ID,), chip="desk", lamps={"green": 22})


class SlowChip:
    """A chip that switches only when a test requests it, so that a test can observe a command in progress."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self._at_work: asyncio.Future[None] | None = None
        self._cut_off = False

    async def switch(self, lamps: Mapping[str, bool]) -> None:
        if not any(lamps.values()):
            return
        self.begun.append(str(lamps))
        self._at_work = asyncio.get_running_loop().create_future()
        try:
            await self._at_work
        except asyncio.CancelledError:
            self.stopped.append(str(lamps))
            raise

    async def pressed(self) -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    @contextmanager
    def lines(self, chip: str, lamps: Mapping[str, int], buttons: Mapping[str, int]) -> Iterator[Lines]:
        yield self

    async def finish(self) -> None:
        if self._at_work and not self._cut_off:
            self._at_work.set_result(None)

    async def fail(self, reason: str) -> None:
        if self._at_work:
            self._at_work.set_exception(Refused("device", reason))

    async def report_again(self) -> None:
        """Do nothing: a GPIO line sends no message."""

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        if self._at_work:
            self._at_work.set_exception(Unavailable("the chip was pulled out"))
        yield

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        self._cut_off = True
        yield
        self._cut_off = False
        await self.finish()


class TestStackLightContract(Contract):
    failure = "the lamp is broken"

    @pytest.fixture
    def opener(self, wait_until: WaitUntil) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Bench]:
            station, chip = RecordingStation(), SlowChip()
            async with open_stacklight("light", SETTINGS, station, SCOPES, lines_factory=chip.lines) as light:
                await wait_until(lambda: light.connected)
                yield Bench(light, station, chip)

        return opened

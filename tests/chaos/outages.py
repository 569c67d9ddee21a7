"""Takes one part away for a while, by freezing or by killing it, and looks what the gateway does meanwhile."""

import asyncio
from dataclasses import dataclass
from typing import Literal, assert_never

from tests.chaos.campaign import Parts
from tests.chaos.recipes import KINDS

Part = Literal["redis", "broker", "wrench"]
How = Literal["frozen", "killed"]
OUTAGES: tuple[tuple[Part, How], ...] = (
    *(("redis", "frozen"), ("redis", "killed"), ("broker", "frozen"), ("broker", "killed")),
    ("wrench", "frozen"),
)
FIRST_CALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Outage:
    """Which part is away, how, and for how many seconds each time; a call of the MES falls into each."""

    part: Part
    how: How
    seconds: tuple[float, ...]

    async def __call__(self, parts: Parts) -> None:
        """Run jobs, take the part away, bring it back, run jobs again."""
        for number, seconds in enumerate(self.seconds):
            await self._live_through(parts, seconds, f"J{FIRST_CALL + number * len(KINDS)}")

    async def _live_through(self, parts: Parts, seconds: float, job_id: str) -> None:
        await asyncio.sleep(0.5)
        await self._take_away(parts)
        call = asyncio.create_task(parts.seen.mes.start(job_id, KINDS[0]), name="call in the outage")
        await asyncio.sleep(seconds)
        if self.part != "wrench":
            assert not call.done(), "a call was answered that cannot be in the store"
        await self._bring_back(parts)
        await call
        async with asyncio.timeout(30):
            await parts.seen.mes.ended[job_id].wait()

    async def _take_away(self, parts: Parts) -> None:
        match self.part:
            case "wrench":
                parts.seen.controller.there.clear()
            case "redis" | "broker":
                server = parts.redis if self.part == "redis" else parts.broker
                if self.how == "frozen":
                    server.freeze()
                else:
                    await server.kill()
                    parts.seen.kills[self.part] += 1
            case _:
                assert_never(self.part)

    async def _bring_back(self, parts: Parts) -> None:
        match self.part:
            case "wrench":
                parts.seen.controller.there.set()
            case "redis" | "broker":
                server = parts.redis if self.part == "redis" else parts.broker
                if self.how == "frozen":
                    server.thaw()
                else:
                    await server.start()
            case _:
                assert_never(self.part)

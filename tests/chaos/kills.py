"""Kills gateway, Redis and broker again and again, at random instants and at fault points."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from edge.foundation.fault_points import FaultPoint
from tests.chaos.campaign import Life, Parts
from tests.local_broker import OwnBroker
from tests.store.servers import Server

Target = Literal["gateway", "redis", "broker", "all"]
EVERYTHING: tuple[Target, ...] = ("gateway", "gateway", "gateway", "gateway", "redis", "broker", "all")


@dataclass(frozen=True, slots=True)
class Kills:
    """How many, of what, and for how many seconds at the most; `tell` hears of the progress."""

    count: int
    targets: tuple[Target, ...] = EVERYTHING
    seconds: float = float("inf")
    report: Callable[[str], None] = lambda _: None

    async def __call__(self, parts: Parts) -> None:
        """Kill."""
        for life in parts.lives:
            life.points = tuple(FaultPoint)
        kills = parts.seen.kills
        end = time.monotonic() + self.seconds
        while kills.total() < self.count and time.monotonic() < end:
            # Another gateway may be dead at this time.
            life = parts.chance.choice(parts.lives)
            await life.recovered()
            await asyncio.sleep(parts.chance.uniform(0, 0.5))
            kills[await _strike(parts, life, parts.chance.choice(self.targets))] += 1
            if kills.total() % 10 == 0:
                self.report(f"{kills.total()} kills, {len(parts.seen.mes.answers)} jobs")


async def _strike(parts: Parts, life: Life, target: Target) -> str:
    """Kill, and start again what does not restart by itself; return what was killed, or at which point."""
    match target:
        case "gateway":
            return await life.kill()
        case "redis":
            await _restart(parts.redis, parts.chance.uniform(0, 0.3))
        case "broker":
            await _restart(parts.broker, parts.chance.uniform(0, 0.3))
        case "all":
            strikes = (life.strike() for life in parts.lives)
            await asyncio.gather(*strikes, _restart(parts.redis, 0.1), _restart(parts.broker, 0.1))
    return target


async def _restart(server: Server | OwnBroker, pause: float) -> None:
    await server.kill()
    await asyncio.sleep(pause)
    await server.start()

"""The gateway itself as a source of samples: equipment, store, clock, temperature, memory; and its built-in rules."""

import asyncio
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from edge.app.job_samples import JOB_ABORTED
from edge.app.parts import GatewayParts
from edge.maintenance.clock import Clock, read_clock
from edge.model.rule import Rule
from edge.rules.rule_form import parse_rules
from edge.rules.sample_lines import Line, Sample
from edge.store.server_check import NEARLY_FULL

_INTERVAL_S: Final = 2.0
_REPEAT_MS: Final = 60_000
_TEMPERATURE: Final = Path("/sys/class/thermal/thermal_zone0/temp")

_BUILT_IN: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "gateway.equipment_offline",
        "kind": "limit",
        "tag": "equipment.*.connected",
        "limits": {"low": {"at": 0.5, "severity": 600}},
        "on_delay_seconds": 5,
        "message": {"en": "{subject}: equipment is offline"},
    },
    {
        "id": "gateway.job_aborted",
        "kind": "occurs",
        "pattern": JOB_ABORTED,
        "severity": 500,
        "message": {"en": "job {job} was aborted"},
    },
    {
        "id": "gateway.store_nearly_full",
        "kind": "limit",
        "tag": "gateway.store_fullness",
        "limits": {"high": {"at": NEARLY_FULL, "severity": 800}},
        "hysteresis": 0.05,
        "message": {"en": "the store is {value} full"},
    },
    {
        "id": "gateway.clock_unsynchronised",
        "kind": "limit",
        "tag": "gateway.clock_synchronised",
        "limits": {"low": {"at": 0.5, "severity": 300}},
        "on_delay_seconds": 60,
        "message": {"en": "the clock of the gateway is not synchronised"},
    },
)


def with_built_in(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return rules with the built-in ones; a rule of the same id replaces the built-in one."""
    built_in, _ = parse_rules(list(_BUILT_IN))
    ids = {rule.id for rule in rules}
    return (*rules, *(rule for rule in built_in if rule.id not in ids))


class GatewayTags:
    """Samples the gateway at an interval; a value that stays is repeated once a minute."""

    def __init__(self, core: GatewayParts, put: Callable[[Line], None], clock: Callable[[], int]) -> None:
        self._core = core
        self._put = put
        self._clock = clock
        self._last: dict[str, tuple[object, int]] = {}

    async def run(self, interval_s: float = _INTERVAL_S) -> None:
        """Measure until cancelled."""
        while True:
            self.sample(self._clock())
            await asyncio.sleep(interval_s)

    def sample(self, now: int) -> None:
        """Queue the values that changed, or are due to be repeated."""
        for name, value in self._values():
            last = self._last.get(name)
            if last is None or last[0] != value or now - last[1] >= _REPEAT_MS:
                self._last[name] = (value, now)
                self._put(Sample(now, name, value))

    def _values(self) -> Iterator[tuple[str, float]]:
        for each in self._core.watch.watched:
            connected = each.equipment.connected
            if connected is not None:
                yield f"equipment.{each.equipment.name}.connected", int(connected)
        memory = self._core.health.memory
        if memory.limit:
            yield "gateway.store_fullness", round(memory.fullness, 2)
        state = read_clock()
        if state is not Clock.UNKNOWN:
            yield "gateway.clock_synchronised", int(state is Clock.SYNCHRONISED)
        yield "gateway.memory_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        try:
            yield "gateway.cpu_temperature", round(int(_TEMPERATURE.read_text()) / 1000)
        except (OSError, ValueError):
            return

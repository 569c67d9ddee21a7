"""The tool of a strict Open Protocol controller: what it physically does, its own log, and its results as on flash."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

_TARGET = {1: 1000, 2: 8000, 3: 8500, 4: 12000}
"""By the number of a parameter set its torque in 0.01 N·m."""
_NOT_OK_FACTOR = 1.2
_FIXED_DATES = {
    "zeros": "0000-00-00:00:00:00",
    "blank": " " * 19,
    "year 1": "0001-01-01:00:00:00",
    "year 9999": "9999-12-31:23:59:59",
    "30 February": "2026-02-30:12:00:00",
    "one second": "2026-11-26:12:00:00",
}


@dataclass(frozen=True)
class Entry:
    """One line of the physical log; `at` is in seconds of a clock that only continues."""

    at: float
    what: str
    vin: str = ""
    pset: int = 0
    number: int = 0


@dataclass
class Habits:
    """What a controller writes into its results, and what its operator does.

    `numbers`: `rising`, `zero`, `restart` (1, 2, 3, 1, …) or `repeat` (1, 1, 2, 2, …). `dates`: `true`, or one of the
    fixed ones. The operator pulls the trigger `reaction` seconds after the tool was enabled, once or until the batch is
    done; a greedy one as long as it is enabled. A tightening takes `work` seconds. The results in `not_ok`, counted
    from 1, are bad ones.
    """

    numbers: str = "rising"
    dates: str = "true"
    reaction: float = 0.05
    work: float = 0.1
    greedy: bool = False
    absent: bool = False
    not_ok: frozenset[int] = frozenset()
    counts_batches: bool = True


class Tool:
    """One tool with its operator; `on_change` is called when it is enabled or disabled, `on_result` for each result."""

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self.log: list[Entry] = []
        self.results: list[dict[str, int | str]] = []
        self.enabled = False
        self.vin, self.pset, self.job = "", 0, 0
        self.batch_size, self.batch_counter = 1, 0
        self.on_change: Callable[[], None] = lambda: None
        self.on_result: Callable[[dict[str, int | str]], None] = lambda _: None
        self._enabled = asyncio.Event()
        self._times_enabled = 0

    @property
    def parameter_sets(self) -> list[int]:
        """The numbers of its parameter sets."""
        return list(_TARGET)

    def target(self, pset: int) -> int:
        """Return the torque of a parameter set in 0.01 N·m, 0 for one that it lacks."""
        return _TARGET.get(pset, 0)

    def note(self, what: str, number: int = 0) -> None:
        """Write a line of the log."""
        self.log.append(Entry(time.monotonic(), what, self.vin, self.pset, number))

    def entries(self, what: str) -> list[Entry]:
        """Return the lines of the log of one kind."""
        return [entry for entry in self.log if entry.what == what]

    def seconds_enabled(self) -> float:
        """Return for how long the tool was enabled in all; it counts up to now while it is."""
        total, since = 0.0, None
        for entry in self.log:
            if entry.what == "enabled":
                since = entry.at
            elif entry.what == "disabled" and since is not None:
                total, since = total + entry.at - since, None
        return total if since is None else total + time.monotonic() - since

    def enable(self) -> None:
        """Enable the tool."""
        if not self.enabled:
            self.enabled = True
            self._times_enabled += 1
            self.note("enabled")
            self._enabled.set()
            self.on_change()

    def disable(self) -> None:
        """Disable the tool; what turns stops."""
        if self.enabled:
            self.enabled = False
            self._enabled.clear()
            self.note("disabled")
            self.on_change()

    def lose_power(self) -> None:
        """Forget what is not on flash."""
        self.disable()
        self.vin, self.pset, self.job = "", 0, 0
        self.batch_size, self.batch_counter = 1, 0

    async def operate(self) -> None:
        """Pull the trigger whenever the tool is enabled, until cancelled."""
        while True:
            await self._enabled.wait()
            turn, pulls = self._times_enabled, 0
            while self._is_enabled_since(turn):
                await asyncio.sleep(self.habits.reaction)
                if self._is_enabled_since(turn) and self._wants_to_pull(pulls):
                    pulls += 1
                    await self._pull(turn)

    def tighten(self, *, vin: str | None = None, is_ok: bool = True) -> int:
        """Make the result of one tightening, also one of the operator's own; return its number."""
        count = len(self.results) + 1
        is_ok = is_ok and count not in self.habits.not_ok
        if self.batch_size > 1 and self.habits.counts_batches:
            self.batch_counter += is_ok
        number = {"rising": count, "zero": 0, "restart": (count - 1) % 3 + 1, "repeat": (count + 1) // 2}
        values = self._values(self.vin if vin is None else vin, number[self.habits.numbers], is_ok=is_ok)
        self.results.append(values)
        self.note("tightened", number[self.habits.numbers])
        self.on_result(values)
        return number[self.habits.numbers]

    async def _pull(self, turn: int) -> None:
        self.note("pulled")
        vin = self.vin
        await asyncio.sleep(self.habits.work)
        if self._is_enabled_since(turn):
            self.tighten(vin=vin)
        else:
            self.note("aborted")

    def _is_enabled_since(self, turn: int) -> bool:
        return self.enabled and turn == self._times_enabled

    def _wants_to_pull(self, pulls: int) -> bool:
        if self.habits.absent or self.habits.greedy:
            return not self.habits.absent
        return self.batch_counter < self.batch_size if self.batch_size > 1 else pulls == 0

    def _values(self, vin: str, number: int, *, is_ok: bool) -> dict[str, int | str]:
        target = self.target(self.pset)
        now = _FIXED_DATES.get(self.habits.dates) or datetime.now().strftime("%Y-%m-%d:%H:%M:%S")  # noqa: DTZ005 - local
        is_batch = self.batch_size > 1
        return {
            "cell": 1,
            "channel": 1,
            "name": "STRICT",
            "vin": vin,
            "job": self.job,
            "pset": self.pset,
            "batch_size": self.batch_size if is_batch else 0,
            "batch_counter": self.batch_counter,
            "batch_ok": int(self.batch_counter >= self.batch_size) if is_batch else 2,
            "ok": int(is_ok),
            "torque_ok": 1 if is_ok else 2,
            "angle_ok": 1,
            "torque_min": target * 9 // 10,
            "torque_max": target * 11 // 10,
            "torque_target": target,
            # One hundredth more each time: two results of one second differ.
            "torque": round(target * (1 if is_ok else _NOT_OK_FACTOR)) + len(self.results) % 100,
            "angle_min": 0,
            "angle_max": 9999,
            "angle_target": 0,
            "angle": 42,
            "time": now,
            "changed": now,
            "number": number,
            "unit": 1,
            "kind": 1,
        }

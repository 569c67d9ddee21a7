"""The telemetry scene of the demo: a sensor, a rule, an alarm, and the MES that acknowledges it, on real parts."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text as RichText

from edge.config import MqttSettings
from edge.features.simulator.demo_parts import (
    DemoPage,
    OpcuaAddress,
    limit_demo,
    open_demo_gateway,
    page_section,
    quoting_last_lines,
    repeated,
    scene_settings,
    wait_until,
)
from edge.features.simulator.demo_view import DemoView, view_on
from edge.features.simulator.mes import Mes, open_mes
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.local_broker import open_broker
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.instant import milliseconds, parse_instant
from edge.ports.alarm import AlarmCall, AlarmChangeKind, PublicAlarm, PublicAlarmChange

EXPECTED: Final = ("raised", "escalated", "acknowledged", "eased", "cleared")


class ObservedChange(Struct, frozen=True):
    """A change of the alarm, and the milliseconds from its instant to its arrival at the MES."""

    change: PublicAlarmChange
    took_ms: int


class AlarmTrend(Struct):
    """The values that the sensor sent, and the changes of its alarm that the MES received."""

    tag: str
    high: float
    high_high: float
    values: list[float] = field(default_factory=list)
    changes: list[ObservedChange] = field(default_factory=list)

    def take_change(self, change: PublicAlarmChange, now: int) -> bool:
        """Keep a change of the alarm of this tag; return whether it is one, and new."""
        is_known = any((item.change.kind, item.change.at) == (change.kind, change.at) for item in self.changes)
        if change.alarm.subject != self.tag or is_known:
            return False
        self.changes.append(ObservedChange(change, max(0, now - milliseconds(parse_instant(change.at)))))
        return True

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the changes, in their order."""
        return tuple(item.change.kind.value for item in self.changes)

    @property
    def alarm(self) -> PublicAlarm | None:
        """The alarm as the MES knows it; None before its first change."""
        return self.changes[-1].change.alarm if self.changes else None

    def faults(self) -> Iterator[str]:
        """Yield what differs from one alarm that goes up, is acknowledged and goes down again."""
        if self.kinds != EXPECTED:
            yield f"the MES received the changes {', '.join(self.kinds) or 'none'}; expected {', '.join(EXPECTED)}"
        if len({item.change.alarm.id for item in self.changes}) > 1:
            yield "the changes belong to several alarms"


COLUMNS: Final = 60
ROWS: Final = 8
_FRAMES_PER_SECOND: Final = 15
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_LEAST: Final = 60.0
_MOST: Final = 100.0


@contextmanager
def follow_trend(console: Console, trend: AlarmTrend) -> Iterator[None]:
    """Draw the trend continuously on a terminal; the last frame stays on the screen. Elsewhere draw nothing."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    with Live(get_renderable=lambda: trend_panel(trend), console=console, refresh_per_second=_FRAMES_PER_SECOND):
        yield


def trend_panel(trend: AlarmTrend) -> Padding:
    """Return the trend in a frame of the colour of its alarm."""
    alarm = trend.alarm
    style, state = "bright_black", "no alarm"
    if alarm:
        style = "green" if not alarm.active else "red" if alarm.severity >= trend_severity(trend) else "yellow"
        state = f"{alarm.state}, severity {alarm.severity}" if alarm.active else alarm.state
    shown = f"{trend.values[-1]:.1f} °C" if trend.values else "–"
    title = RichText.assemble((trend.tag, "bold"), "  ", (shown, level_style(trend, trend.values[-1:] or [0.0])))
    panel = Panel(
        RichText("\n").join(_rows(trend)),
        title=title,
        title_align="left",
        subtitle=RichText(state, style=style),
        subtitle_align="right",
        border_style=style,
        expand=False,
        padding=(0, 1),
    )
    return Padding(panel, (1, 0, 1, 2))


def trend_severity(trend: AlarmTrend) -> int:
    """Return the severity from which the alarm of a trend is shown as critical."""
    return max(item.change.alarm.severity for item in trend.changes)


def level_style(trend: AlarmTrend, values: Sequence[float]) -> str:
    """Return the style of values: by the highest limit that one of them is above."""
    top = max(values)
    return "bold red" if top > trend.high_high else "bold yellow" if top > trend.high else "green"


def _rows(trend: AlarmTrend) -> Iterator[RichText]:
    """Yield the lines of the chart, the highest first; limits are dotted lines behind the values."""
    columns = _columns(trend.values)
    step = (_MOST - _LEAST) / ROWS
    limits = {
        _row_of(trend.high_high, step): ("red", f"{trend.high_high:g}"),
        _row_of(trend.high, step): ("yellow", f"{trend.high:g}"),
    }
    for row in reversed(range(ROWS)):
        bottom = _LEAST + row * step
        colour, label = limits.get(row, ("bright_black", ""))
        line = RichText(f"{label:>4} ", style=colour)
        for column in range(COLUMNS):
            part = columns[column] if column < len(columns) else []
            filled = (max(part) - bottom) / step if part else 0.0
            block = _BLOCKS[max(0, min(8, round(filled * 8)))]
            if block == " ":
                line.append("┄" if label else " ", style=colour)
            else:
                line.append(block, style=level_style(trend, part))
        yield line


def _row_of(limit: float, step: float) -> int:
    return int((limit - _LEAST) / step)


def _columns(values: Sequence[float]) -> list[Sequence[float]]:
    """Return the values in groups that fit the width."""
    size = max(1, -(-len(values) // COLUMNS))
    return [values[start : start + size] for start in range(0, len(values), size)]


_SCOPE: Final = "station-1"
_TAG: Final = "wrench.temperature"
_TOPIC: Final = "sensors/wrench/temperature"
_HIGH: Final = 80.0
_HIGH_HIGH: Final = 95.0
_NORMAL: Final = 75.0
_SAMPLES_PER_SECOND: Final = 25
_SECONDS_PER_LINE: Final = 1
_WITHIN_S: Final = 30.0
RULE: Final[dict[str, Any]] = {
    "id": "hot",
    "kind": "limit",
    "tag": _TAG,
    "limits": {"high": {"at": _HIGH, "severity": 500}, "high_high": {"at": _HIGH_HIGH, "severity": 800}},
    "hysteresis": _HIGH - _NORMAL,
    "on_delay_seconds": 0.5,
    "message": {"en": "{subject} has {value} °C"},
}


class TelemetryAddresses(Struct, frozen=True):
    """Where a kept scene is reached: broker, topic of the sensor, settings for other commands, OPC UA server."""

    broker: str
    topic: str
    settings: Path
    opcua: str
    """For a client on another machine, where the server listens for them."""


class _TelemetryScene(Struct, frozen=True):
    view: DemoView
    console: Console
    trend: AlarmTrend
    sensor: MqttSession
    mes: Mes


@asynccontextmanager
async def open_telemetry_demo(
    console: Console, page: DemoPage | None = None, opcua: OpcuaAddress | None = None
) -> AsyncIterator[TelemetryAddresses]:
    """Show one alarm from its sensor to the MES and back; keep the parts running for the block, then remove them.

    Raises Unavailable with the reason when a part ends early, also inside the block, or when the alarm does not behave
    as its rule says.
    """
    view = view_on(console)
    view.title("microdcs-edge demo: one alarm, from the sensor to the MES and back, on real parts")
    async with AsyncExitStack() as stack:
        limit = await stack.enter_async_context(limit_demo())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edge-demo-")))
        broker = await stack.enter_async_context(open_broker())
        opcua = (opcua or OpcuaAddress()).with_free_port()
        view.report("broker", f"mosquitto at {broker.url}")
        (directory / "rules.json").write_text(json.dumps([RULE], indent=1))
        settings = _settings(directory, broker.url, opcua.endpoint) + page_section(page, directory)
        gateway = await stack.enter_async_context(open_demo_gateway(directory, settings, limit.give_up))
        view.report("gateway", "edge run, with a store of its own", f"OPC UA at {opcua.remote}")
        mqtt = MqttSettings(url=broker.url)
        mes = await stack.enter_async_context(open_mes(mqtt, "mes"))
        sensor = await stack.enter_async_context(open_session(mqtt, "sensor"))
        trend = AlarmTrend(_TAG, _HIGH, _HIGH_HIGH)
        with quoting_last_lines(gateway):
            await _show_alarm(_TelemetryScene(view, console, trend, sensor, mes))
        slowest = max(change.took_ms for change in trend.changes)
        changes = ", ".join(trend.kinds)
        view.verdict(f"DEMO OK  {len(trend.values)} samples, 1 alarm: {changes}; at the MES within {slowest} ms")
        limit.lift()
        async with repeated(page, partial(_repeat_heat, sensor)):
            yield TelemetryAddresses(broker.url, _TOPIC, directory / "edge.toml", opcua.remote)


async def _show_alarm(parts: _TelemetryScene) -> None:
    """Send rising values, acknowledge the alarm as the MES, and send falling values."""
    view, trend = parts.view, parts.trend

    async def take_change(change: PublicAlarmChange) -> None:
        if trend.take_change(change, now_ms()):
            view.report("alarm", _describe(change, trend.changes[-1].took_ms))

    await parts.mes.watch_alarms(_SCOPE, take_change)
    view.report("sensor", f"{_SAMPLES_PER_SECOND} samples a second on {_TOPIC}, such as {_payload(71.5)}")
    delay = RULE["on_delay_seconds"]
    levels = f"above {_HIGH:g} °C for {delay:g} s: severity 500; above {_HIGH_HIGH:g} °C: 800"
    view.report("rule", levels, f"{_NORMAL:g} °C or less clears it")
    with follow_trend(parts.console, trend):
        await _send(parts, _ramp(65.0, 98.0, 3.0))
        await _wait_for(parts, "escalated")
        await _acknowledge(parts)
        await _wait_for(parts, "acknowledged")
        await _send(parts, _ramp(98.0, 66.0, 2.0))
        await _wait_for(parts, "cleared")
        await _check_retained(parts)
    if faults := list(trend.faults()):
        raise Unavailable("; ".join(faults))


async def _send(parts: _TelemetryScene, values: Iterator[float]) -> None:
    for value in values:
        await parts.sensor.send(Message(_TOPIC, _payload(value).encode()))
        if not len(parts.trend.values) % (_SAMPLES_PER_SECOND * _SECONDS_PER_LINE) and not parts.console.is_terminal:
            parts.view.report("sample", f"{_TAG} = {value:.1f} °C")
        parts.trend.values.append(value)
        await asyncio.sleep(1 / _SAMPLES_PER_SECOND)


async def _wait_for(parts: _TelemetryScene, kind: str) -> None:
    """Wait until the MES received this change of the alarm."""
    if not await wait_until(lambda: kind in parts.trend.kinds, _WITHIN_S):
        raise Unavailable(Text.of("the alarm was not {kind} within {within_s:g} s", kind=kind, within_s=_WITHIN_S))


async def _acknowledge(parts: _TelemetryScene) -> None:
    alarm = parts.trend.alarm
    if alarm is None:
        raise Unavailable("the MES knows no alarm")
    parts.view.report("MES", f"calls Acknowledge for alarm {alarm.id[:8]}, by shift leader")
    call = AlarmCall(alarm_id=alarm.id, by="shift leader", comment="fan replaced")
    await parts.mes.call_alarm(_SCOPE, "Acknowledge", call)


async def _check_retained(parts: _TelemetryScene) -> None:
    """Check that no retained alarm is left: it is over and acknowledged."""
    retained: dict[str, bytes] = {}

    async def take(message: Message) -> None:
        retained[message.topic] = message.payload

    await parts.sensor.subscribe(f"app/jobs/{_SCOPE}/alarm/+", take)
    if not await wait_until(lambda: not any(retained.values()), _WITHIN_S):
        raise Unavailable("the broker still retains the alarm that is over")


async def _repeat_heat(sensor: MqttSession) -> None:
    """Send values that rise and fall, so that the alarm is raised and clears every minute."""
    for value in itertools.cycle([*_ramp(66.0, 98.0, 30.0), *_ramp(98.0, 66.0, 30.0)]):
        await sensor.send(Message(_TOPIC, _payload(value).encode()))
        await asyncio.sleep(1 / _SAMPLES_PER_SECOND)


def _ramp(start: float, end: float, seconds: float) -> Iterator[float]:
    """Yield values from `start` to `end`, with the small ripple of a real sensor."""
    count = round(seconds * _SAMPLES_PER_SECOND)
    for number in range(1, count + 1):
        yield round(start + (end - start) * number / count + (0.3 if number % 3 == 0 else -0.1), 1)


def _payload(value: float) -> str:
    return json.dumps({"celsius": value})


def _describe(change: PublicAlarmChange, took_ms: int) -> str:
    match change.kind:
        case AlarmChangeKind.ACKNOWLEDGED:
            text = f"by {change.by}: {change.alarm.comment}"
        case AlarmChangeKind.CLEARED:
            text = "the alarm is normal"
        case _:
            text = change.alarm.message
    return f"{change.kind.value:<12}  severity {change.alarm.severity}  {text:<32}  {took_ms:>3} ms to the MES"


def _settings(directory: Path, broker: str, endpoint: str) -> str:
    """Return the settings of the gateway; strings are the same in JSON and in TOML."""
    text = partial(json.dumps, ensure_ascii=False)
    return f"""\
{scene_settings(directory, broker, _SCOPE, endpoint)}
[telemetry]
rules = {text(str(directory / "rules.json"))}

[source.wrench]
topic = {text(_TOPIC)}
pointer = "/celsius"
tag = {text(_TAG)}

[logging]
format = "console"
"""

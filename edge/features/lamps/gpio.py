"""Drives the lines of a GPIO chip, lamps and buttons, with libgpiod, an extra of the package."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import gpiod
from gpiod.line import Bias, Direction, Edge, Value

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.links.connection_fault import ConnectionFailed
from edge.model.equipment_connection import ConnectionFault

_DEBOUNCE = timedelta(milliseconds=30)
_CONSUMER = "microdcs-edge"
# A line that flutters while the store is unavailable must not fill the memory.
_PRESSES_WAITING = 100


class GpioLines:
    """Lines that were requested from the kernel."""

    def __init__(self, lamps: gpiod.LineRequest | None, outputs: Mapping[str, int], names: Mapping[int, str]) -> None:
        self._lamps = lamps
        self._outputs = outputs
        self._names = names
        self._pressed: asyncio.Queue[str | Unavailable] = asyncio.Queue()

    async def switch(self, lamps: Mapping[str, bool]) -> None:
        """Switch the lamps of these names on or off, at once. Raises Unavailable."""
        if self._lamps is None:
            return
        values: dict[int | str, Value] = {
            self._outputs[name]: Value.ACTIVE if on else Value.INACTIVE for name, on in lamps.items()
        }
        try:
            self._lamps.set_values(values)
        except OSError as error:
            raise Unavailable(Text.of("GPIO lines cannot be set: {reason}", reason=error.strerror)) from error

    async def pressed(self) -> str:
        """Wait until a button is pressed; return its name. Raises Unavailable when the lines are gone."""
        pressed = await self._pressed.get()
        if isinstance(pressed, Unavailable):
            raise pressed
        return pressed

    def take_edges(self, buttons: gpiod.LineRequest) -> None:
        """Read the edges that the kernel recorded; the event loop calls it when there are any."""
        try:
            edges = buttons.read_edge_events()
        except OSError as error:
            # Otherwise the event loop would call this again at once, without end.
            asyncio.get_running_loop().remove_reader(buttons.fd)
            self._pressed.put_nowait(Unavailable(Text.of("GPIO lines cannot be read: {reason}", reason=error.strerror)))
            return
        for edge in edges:
            if self._pressed.qsize() < _PRESSES_WAITING:
                self._pressed.put_nowait(self._names[edge.line_offset])


@contextmanager
def request_lines(
    chip: str, lamps: Mapping[str, int], buttons: Mapping[str, int], devices: Path
) -> Iterator[GpioLines]:
    """Request lines of the chip with that label, by their offsets; lamps are off then.

    Each button connects to ground. Raises Unavailable when there is no such chip or a line is in use.
    """
    output = gpiod.LineSettings(direction=Direction.OUTPUT)
    button = gpiod.LineSettings(
        direction=Direction.INPUT,
        edge_detection=Edge.RISING,
        bias=Bias.PULL_UP,
        active_low=True,
        debounce_period=_DEBOUNCE,
    )
    with ExitStack() as stack:
        try:
            device = str(_device(chip, devices))
            request = stack.enter_context
            outputs = (
                request(gpiod.request_lines(device, dict.fromkeys(lamps.values(), output), _CONSUMER))
                if lamps
                else None
            )
            lines = GpioLines(outputs, lamps, {offset: name for name, offset in buttons.items()})
            if buttons:
                inputs = request(gpiod.request_lines(device, dict.fromkeys(buttons.values(), button), _CONSUMER))
                loop = asyncio.get_running_loop()
                loop.add_reader(inputs.fd, lines.take_edges, inputs)
                stack.callback(loop.remove_reader, inputs.fd)
        except OSError as error:
            raise Unavailable(
                Text.of("lines of GPIO chip {chip}: {reason}", chip=chip, reason=error.strerror),
                "`gpioinfo` shows who has a line; edge hw check",
            ) from error
        yield lines


def _device(label: str, devices: Path) -> Path:
    labels = []
    for device in sorted(devices.glob("gpiochip*")):
        with gpiod.Chip(str(device)) as chip:
            labels.append(chip.get_info().label)
        if labels[-1] == label:
            return device
    advice = Text.of("There are: {labels}. edge hw check", labels=", ".join(labels) or Text.of("none"))
    raise ConnectionFailed(ConnectionFault.UNREACHABLE, Text.of("there is no GPIO chip {label}", label=label), advice)

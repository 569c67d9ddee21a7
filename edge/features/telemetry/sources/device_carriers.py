"""Carriers of devices: a device, such as a tag reader or a sensor, belongs to the carrier that it was bound to last."""

from typing import Final

MAX_DEVICES: Final = 10_000


class DeviceCarriers:
    """The carrier of each device; of more than 10,000 devices those bound longest ago are forgotten."""

    def __init__(self, most: int = MAX_DEVICES) -> None:
        self._carriers: dict[str, str] = {}
        self._most = most

    def bind(self, device: str, carrier: str) -> None:
        """Bind a device to a carrier, which ends its former binding; an empty carrier unbinds it."""
        self._carriers.pop(device, None)
        if not carrier:
            return
        if len(self._carriers) >= self._most:
            del self._carriers[next(iter(self._carriers))]
        self._carriers[device] = carrier

    def unbind_carrier(self, carrier: str) -> None:
        """End the bindings of all devices of a carrier."""
        self._carriers = {device: other for device, other in self._carriers.items() if other != carrier}

    def of(self, device: str) -> str | None:
        """Return the carrier of a device; None without one."""
        return self._carriers.get(device)

"""The devices of the demo: simulated devices in separate processes, over MQTT, OPC UA or Open Protocol."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct, field

from edge.features.simulator.broker import free_port

CONTROLLER = "wrench"
CAMERA = "camera"
_WORK = ("--delay", "0.6")
_TIGHTENINGS = (
    "com.example.station.position.v1",
    "com.example.station.tighten.v1",
    "com.example.station.verify_torque.v1",
)


class DemoDevice(Struct, frozen=True):
    """A device with its name at the station.

    `what` is its description for people, `arguments` are those of `edge sim`. The device handles the actions of
    `type_ids`; `keys` are the other keys of its settings section, as TOML.
    """

    name: str
    what: str
    arguments: tuple[str, ...]
    type_ids: tuple[str, ...]
    keys: str

    def section(self) -> str:
        """Return the settings section of the device; strings and lists of strings are the same in JSON and in TOML."""
        return f"[southbound.{self.name}]\ntype_ids = {json.dumps(self.type_ids)}\n{self.keys}\n"


class DemoDevices(Struct, frozen=True):
    """The devices of a demo and their recipe; `early` devices start before the gateway, `late` devices after it.

    `unheard` maps each `type_id` to its device, for devices whose commands are not visible on the broker.
    """

    recipe: str
    early: tuple[DemoDevice, ...] = ()
    late: tuple[DemoDevice, ...] = ()
    unheard: Mapping[str, str] = field(default_factory=dict)

    @property
    def every(self) -> tuple[DemoDevice, ...]:
        """Return all devices, the early ones first."""
        return self.early + self.late


def over_mqtt(broker: str, scope: str) -> DemoDevices:
    """Return devices at a broker: the controller executes commands, the camera sends events."""
    device = ("--url", broker, "--name")
    controller = DemoDevice(
        CONTROLLER,
        "a simulated tightening controller, a process of its own",
        ("controller", *device, CONTROLLER, *_WORK),
        ("com.example.station.position.v1", "com.example.station.tighten.v1"),
        'kind = "mqtt"',
    )
    camera = DemoDevice(
        CAMERA,
        "a simulated inspection camera, a process of its own",
        ("camera", *device, CAMERA, "--scope", scope),
        ("com.example.station.qa_result.v1", "com.example.station.torque_result.v1"),
        'kind = "mqtt"',
    )
    # Both start after the gateway: a camera repeats an unanswered event only after seconds.
    return DemoDevices("rear-axle.json", late=(controller, camera))


def over_opcua(_broker: str, _scope: str) -> DemoDevices:
    """Return devices with OPC UA servers: a joining system and a vision system; both execute commands only."""
    controller_port, camera_port = free_port(), free_port()
    controller = DemoDevice(
        CONTROLLER,
        f"a simulated joining system (OPC 40450-1), a process of its own, {_url(controller_port)}",
        ("ijt", "--name", CONTROLLER, "--port", str(controller_port), *_WORK),
        _TIGHTENINGS,
        f'kind = "ijt"\nurl = "{_url(controller_port)}"\nsecurity = "none"',
    )
    return _executing("rear-axle-opcua.json", controller, _vision_camera(camera_port))


def over_openprotocol(_broker: str, _scope: str) -> DemoDevices:
    """Return a controller with Open Protocol and a camera that is an OPC UA server; both execute commands only."""
    controller_port, camera_port = free_port(), free_port()
    address = f"tcp://127.0.0.1:{controller_port}"
    controller = DemoDevice(
        CONTROLLER,
        f"a simulated tightening controller (Open Protocol), a process of its own, {address}",
        ("openprotocol", "--name", CONTROLLER, "--port", str(controller_port), *_WORK),
        _TIGHTENINGS,
        f'kind = "openprotocol"\nurl = "{address}"',
    )
    return _executing("rear-axle-openprotocol.json", controller, _vision_camera(camera_port))


def _vision_camera(port: int) -> DemoDevice:
    return DemoDevice(
        CAMERA,
        f"a simulated vision system (OPC 40100-1), a process of its own, {_url(port)}",
        ("vision", "--name", CAMERA, "--port", str(port), *_WORK),
        ("com.example.station.inspect.v1",),
        f'kind = "vision"\nurl = "{_url(port)}"\nsecurity = "none"',
    )


def _executing(recipe: str, controller: DemoDevice, camera: DemoDevice) -> DemoDevices:
    takers = {type_id: demo_device.name for demo_device in (controller, camera) for type_id in demo_device.type_ids}
    # Both start before the gateway: after a failed connection, the gateway retries only after seconds.
    return DemoDevices(recipe, early=(controller, camera), unheard=takers)


DEVICES: Mapping[str, Callable[[str, str], DemoDevices]] = MappingProxyType(
    {"mqtt": over_mqtt, "opcua": over_opcua, "openprotocol": over_openprotocol}
)
"""Protocol → function that returns its devices for the URL of the broker and the scope of the station."""


def _url(port: int) -> str:
    return f"opc.tcp://127.0.0.1:{port}"

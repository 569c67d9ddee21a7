"""What does the work in the demo: simulated devices, processes of their own, over MQTT or over OPC UA."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from edge.sim.broker import free_port

CONTROLLER = "wrench"
CAMERA = "camera"
_WORK = ("--delay", "0.6")


@dataclass(frozen=True, slots=True)
class DemoDevice:
    """One device by its name at the station.

    `what` describes it to people, `arguments` are those of `edge sim`. It takes the actions of `type_ids`; `keys` are
    further keys of its section in the settings, as TOML.
    """

    name: str
    what: str
    arguments: tuple[str, ...]
    type_ids: tuple[str, ...]
    keys: str

    def section(self) -> str:
        """Write its section of the settings. A list of strings and a string are the same in JSON and in TOML."""
        return f"[southbound.{self.name}]\ntype_ids = {json.dumps(self.type_ids)}\n{self.keys}\n"


@dataclass(frozen=True, slots=True)
class DemoDevices:
    """The devices of a demo and the recipe for them; `early` ones are there before the gateway, `late` ones after it.

    `unheard` says which device takes which `type_id` where no bystander can listen to what is said to it.
    """

    recipe: str
    early: tuple[DemoDevice, ...] = ()
    late: tuple[DemoDevice, ...] = ()
    unheard: Mapping[str, str] = field(default_factory=dict)

    @property
    def every(self) -> tuple[DemoDevice, ...]:
        """All of them."""
        return self.early + self.late


def over_mqtt(broker: str, scope: str) -> DemoDevices:
    """Return devices at a broker: one takes commands, the other asks for work."""
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
    # A question that the gateway is not there to hear is asked again only after seconds.
    return DemoDevices("rear-axle.json", late=(controller, camera))


def over_opcua(_broker: str, _scope: str) -> DemoDevices:
    """Return devices that are OPC UA servers: a joining system and a vision system. Both take commands only."""
    controller_port, camera_port = free_port(), free_port()
    controller = DemoDevice(
        CONTROLLER,
        f"a simulated joining system (OPC 40450-1), a process of its own, {_url(controller_port)}",
        ("ijt", "--name", CONTROLLER, "--port", str(controller_port), *_WORK),
        (
            "com.example.station.position.v1",
            "com.example.station.tighten.v1",
            "com.example.station.verify_torque.v1",
        ),
        f'kind = "ijt"\nurl = "{_url(controller_port)}"\nsecurity = "none"',
    )
    camera = DemoDevice(
        CAMERA,
        f"a simulated vision system (OPC 40100-1), a process of its own, {_url(camera_port)}",
        ("vision", "--name", CAMERA, "--port", str(camera_port), *_WORK),
        ("com.example.station.inspect.v1",),
        f'kind = "vision"\nurl = "{_url(camera_port)}"\nsecurity = "none"',
    )
    takers = {type_id: each.name for each in (controller, camera) for type_id in each.type_ids}
    # They take seconds to be there; a gateway that met none of them would try again only after seconds.
    return DemoDevices("rear-axle-opcua.json", early=(controller, camera), unheard=takers)


DEVICES: Mapping[str, Callable[[str, str], DemoDevices]] = MappingProxyType({"mqtt": over_mqtt, "opcua": over_opcua})
"""The devices to choose from, given the URL of the broker and the scope of their station."""


def _url(port: int) -> str:
    return f"opc.tcp://127.0.0.1:{port}"

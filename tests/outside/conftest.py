"""A whole plant of real programs for each test: broker, store, gateway, MES and a tool."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.plant import Mes, Wrench
from tests.outside.servers import PREFIX, Broker, Clock, Gateway, Store, build_clock_shim, ended

EQUIPMENT = f"""
[southbound.wrench]
type_ids = ["com.example.station.tighten.v1"]
topic_prefix = "{PREFIX}/equipment"
"""


@dataclass
class Plant:
    """The programs of one plant and what belongs to them."""

    broker: Broker
    store: Store
    gateway: Gateway
    mes: Mes
    wrench: Wrench
    new_gateway: Callable[[str, Clock | None], Gateway]
    new_clock: Callable[[str], Clock]
    gateway_clock: Clock
    store_clock: Clock
    opcua_port: int

    def step_clocks(self, seconds: float) -> None:
        """Step the wall clock of gateway and store, as of one computer."""
        self.gateway_clock.set(seconds)
        self.store_clock.set(seconds)


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that shifts the wall clock of a process."""
    return build_clock_shim(tmp_path_factory.mktemp("shim"))


@contextlib.contextmanager
def _all_ended(gateways: list[Gateway]) -> Iterator[None]:
    yield
    for gateway in gateways:
        gateway.kill()


@pytest.fixture
def further_settings() -> str:
    """Settings of the gateway from its first start on; a file of tests overrides this in place of a second start."""
    return ""


@pytest.fixture
def plant(tmp_path: Path, shim: Path, further_settings: str) -> Iterator[Plant]:
    """A plant whose gateway serves and has a Work Master."""

    def new_clock(name: str) -> Clock:
        return Clock(shim, tmp_path / f"clock-{name}")

    gateway_clock, store_clock = new_clock("gateway"), new_clock("store")
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store", store_clock)
    broker.start()
    opcua_port = free_port()
    gateways: list[Gateway] = []

    def new_gateway(name: str, clock: Clock | None) -> Gateway:
        port = opcua_port if not gateways else free_port()
        directory = tmp_path / f"gateway-{name}"
        settings = (
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n'
            f'[opcua]\nendpoint = "opc.tcp://127.0.0.1:{port}"\nsecurity = "none"\nanonymous = "engineer"\n'
            f'pki = "{directory}/pki"\n{EQUIPMENT}'
        )
        settings += further_settings
        gateways.append(Gateway(directory, name, settings, clock))
        return gateways[-1]

    mes, wrench = Mes(broker.port), Wrench(broker.port)
    gateway = new_gateway("edge", gateway_clock)
    with ended(broker, store), contextlib.ExitStack() as clients:
        clients.enter_context(_all_ended(gateways))
        store.start()
        gateway.start()
        clients.callback(wrench.client.close)
        wrench.open()
        clients.callback(mes.client.close)
        mes.open()
        mes.configure()
        yield Plant(broker, store, gateway, mes, wrench, new_gateway, new_clock, gateway_clock, store_clock, opcua_port)

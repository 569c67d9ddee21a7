"""One real OPC UA server per module on a free loopback port, and a client that has loaded its data types."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from asyncua import Client

from edge.config import OpcuaSettings
from edge.uaserver import nodesets
from edge.uaserver.server import UaServer
from tests.features.telemetry.opcua.history_client import history  # noqa: F401 - a fixture
from tests.opcua_client import patient_client
from tests.uaserver.clients import Application, make_application, make_settings, with_users
from tests.uaserver.other_stack import observed, other, subscription  # noqa: F401 - fixtures
from tests.uaserver.running import MACHINES, Space, served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(server: UaServer) -> AsyncIterator[Client]:
    # Hundreds of requests at once are slow on a busy machine: the client's watchdog must not report an outage.
    async with patient_client(server.endpoint) as connected:
        await connected.load_data_type_definitions()
        yield connected


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def space(client: Client) -> Space:
    return Space(client, await client.get_namespace_array())


@pytest_asyncio.fixture(loop_scope="module")
async def jobs(server: UaServer) -> AsyncIterator[UaServer]:
    """The server, without jobs before and after the test."""
    yield server
    for scope in ("station-1", "station-2"):
        for number in range(10):
            server.hide(scope, f"job-{number}")
        server.work_masters(scope, [])


@pytest.fixture(scope="session")
def secure_settings(tmp_path_factory: pytest.TempPathFactory) -> OpcuaSettings:
    """The default settings: encryption only. Each role has one user with its name."""
    return with_users(make_settings(tmp_path_factory.mktemp("secure")))


@pytest.fixture(scope="session")
def friend(tmp_path_factory: pytest.TempPathFactory, secure_settings: OpcuaSettings) -> Application:
    """An application that these settings trust."""
    application = make_application(tmp_path_factory.mktemp("friend"))
    application.trusted_by(secure_settings)
    return application


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application without trust."""
    return make_application(tmp_path_factory.mktemp("stranger"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def secure(secure_settings: OpcuaSettings) -> AsyncIterator[UaServer]:
    async with served(secure_settings, MACHINES[:1]) as running:
        yield running


@pytest.fixture(scope="session")
def nodeset_package() -> Path:
    """The wheel from which `make setup` prepares the node sets."""
    (wheel,) = (Path(__file__).parents[2] / ".nodesets").glob(
        f"{nodesets.PACKAGE.replace('-', '_').replace('==', '-')}-*.whl"
    )
    return wheel

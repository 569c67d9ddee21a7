"""Real servers for all tests, and how to wait for what they do."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from asyncua import ua
from hypothesis import settings

from edge.app.features import features
from edge.config import MqttSettings, RedisSettings
from edge.foundation.errors import EdgeError
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.examples import PROFILE, QUICK_PROFILE, omit_constants_of_modules
from tests.local_broker import OwnBroker, open_broker
from tests.station.replaying import differing_replays

# Its grammars of addresses take seconds to build in each process, and no schema of ours names such a format: its import
# fails, and jsonschema continues without.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# As at each start of the product: the store knows the keys of features before it is opened, and in each process of the
# tests the same.
features()

WaitUntil = Callable[..., Awaitable[None]]


def pytest_configure(config: pytest.Config) -> None:
    """Handle Ctrl-C here and in the processes of tests: a CI job in the background inherits that it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "EDGE_FUZZ" not in os.environ:
        is_quick = "not slow" in config.option.markexpr
        settings.load_profile(QUICK_PROFILE if is_quick else PROFILE)
        if is_quick:
            omit_constants_of_modules()
    if config.args == ["tests"] and (worker := os.environ.get("PYTEST_XDIST_WORKER")):
        ignored = {config.invocation_params.dir / path for path in config.option.ignore or ()}
        paths = [path for path in _paths() if path not in ignored]
        start = len(paths) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args[:] = map(str, paths[start:] + paths[:start])


def pytest_sessionstart() -> None:
    """Fail a test with the error of a finalizer, except at the limit of recursion."""
    sys.unraisablehook = _without_recursion(sys.unraisablehook)


def _without_recursion(report: Callable[..., object]) -> Callable[..., None]:
    """Return a hook for errors of finalizers that leaves out those at the limit of recursion.

    In a test with a hostile payload the collector may run at the last level of a decoder: there the finalizers of what
    earlier tests left fail, and only there.
    """

    def hook(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, RecursionError):
            report(unraisable)

    return hook


def _paths() -> list[Path]:
    """Return all folders and files of tests. pytest collects a path that it is given even if `--ignore` names it."""
    return sorted(path for path in Path(__file__).parent.iterdir() if path.is_dir() or path.name.startswith("test_"))


def pytest_collection() -> None:
    """Collect no garbage while the modules are imported."""
    gc.disable()


_WAITING = frozenset({"app", "cli", "features", "integration", "outside", "sentinel"})
"""The folders whose tests start processes and wait for them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the long files first: a worker that begins the longest file at the end leaves the others idle.

    The order is that of the paths again, the same in each process.
    """
    folder = Path(__file__).parent
    paths = {path: path.relative_to(folder).parts for path in {item.path for item in items}}
    items.sort(key=lambda item: (paths[item.path][0] not in _WAITING, paths[item.path]))


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, as the gateway does: it takes a sixth of the time."""
    gc.freeze()
    gc.enable()
    # Address spaces of thousands of nodes are made again and again: by default a collection follows every 700 objects.
    gc.set_threshold(20_000)


@pytest.fixture(autouse=True)
def _logging_as_delivered() -> Iterator[None]:
    """Reset the logging of a command or gateway; a traceback with the locals of each frame takes seconds to render."""
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True, scope="module")
def _data_types_of_this_module() -> Iterator[None]:
    """Take back what asyncua's clients learn of data types: it keeps that for the process, by indexes of one server."""
    tables: tuple[dict[Any, Any], ...] = (
        ua.extension_objects_by_typeid,
        ua.extension_objects_by_datatype,
        ua.typeid_by_extension_objects,
        ua.datatype_by_extension_object,
        vars(ua),
    )
    before = [dict(table) for table in tables]
    yield
    for table, content in zip(tables, before, strict=True):
        for name in table.keys() - content.keys():
            del table[name]
        table.update(content)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker() -> AsyncIterator[OwnBroker]:
    """A mosquitto that all tests share; each keeps to its own topics."""
    async with open_broker() as running:
        yield running


@pytest.fixture
def mqtt(broker: OwnBroker) -> MqttSettings:
    """Settings that lead to the shared broker."""
    return MqttSettings(url=broker.url)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def valkey(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The URL of a Valkey that all tests share; each keeps to its own prefix."""
    directory = tmp_path_factory.mktemp("valkey")
    async with open_store(RedisSettings(url=f"embedded:{directory}"), "tests"):
        yield f"unix://{directory}/valkey.sock"


@pytest_asyncio.fixture
async def redis(valkey: str, unique: str, request: pytest.FixtureRequest) -> AsyncIterator[RedisSettings]:
    """Settings that lead to the shared Valkey, to keys of this test only.

    After the test the runs of its jobs are replayed: they must decide the same.
    """
    settings = RedisSettings(url=valkey, prefix=unique)
    yield settings
    if request.node.get_closest_marker("damaged_runs"):
        return
    assert await _differing(settings, only_ended=False) == []


@pytest.fixture(autouse=True)
def _replayed_from_outside(request: pytest.FixtureRequest) -> Iterator[None]:
    """Replay the ended runs that a test from outside has left; those tests import nothing of the product."""
    is_outside = request.path.parent.name == "outside" and "plant" in request.fixturenames
    store = getattr(request.getfixturevalue("plant"), "store", None) if is_outside else None
    yield
    if store is not None and store.cli("ping") == "PONG":
        # In a thread: the loops of the tests stay as they are.
        settings = RedisSettings(url=f"unix://{store.socket}")
        with ThreadPoolExecutor() as pool:
            differing = pool.submit(asyncio.run, _differing(settings, only_ended=True)).result()
        assert differing == []


async def _differing(settings: RedisSettings, *, only_ended: bool) -> list[object]:
    # A test may have left a store that cannot be opened: one of a newer version, for example.
    with contextlib.suppress(EdgeError):
        async with open_store(settings, None) as opened:
            return [replay async for replay in differing_replays(opened, only_ended=only_ended)]
    return []


@pytest_asyncio.fixture
async def store(redis: RedisSettings) -> AsyncIterator[Store]:
    """A store that is empty."""
    async with open_store(redis, "edge") as opened:
        yield opened


@pytest.fixture
def unique() -> str:
    """A word of this test only, for its topics, keys and client ids."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def wait_until() -> WaitUntil:
    """How to wait for a condition, failing after `deadline` seconds."""

    async def wait(condition: Callable[[], object], deadline: float = 60.0) -> None:
        end = time.monotonic() + deadline
        while not condition():
            assert time.monotonic() < end, "the condition did not come true in time"
            await asyncio.sleep(0.005)

    return wait

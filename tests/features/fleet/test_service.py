"""A signed command runs in a separate process with bounded output."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from edge.access.components import Report
from edge.app.logs import set_level, set_up
from edge.config.sections import LoggingSettings
from edge.features.fleet.service import _MOST_OUTPUT_BYTES, FleetExecutor, _head_of
from edge.foundation.errors import Refused
from edge.store.client import Store


async def test_long_output_is_read_to_its_end_and_cut() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"a" * _MOST_OUTPUT_BYTES + b"b" * 10_000_000)
    stream.feed_eof()
    assert await _head_of(stream) == b"a" * _MOST_OUTPUT_BYTES
    assert stream.at_eof()


async def _unknown() -> Report:
    raise NotImplementedError


@pytest.fixture
def usual_level() -> Iterator[None]:
    before = structlog.get_config()
    set_up(LoggingSettings(level="info", format="json"))
    yield
    set_level("info")
    structlog.configure(**before)


@pytest.mark.usefixtures("usual_level")
async def test_log_level_changes_for_loggers_in_use(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    executor = FleetExecutor(_unknown, None, tmp_path, store, "")
    logger = structlog.get_logger("edge.test")
    logger.debug("before")
    assert await executor.execute("log-level", ("debug", "--minutes", "5"), "anna") == "debug for 5 min, then info"
    logger.debug("meanwhile")
    await executor.execute("log-level", ("error",), "anna")
    logger.warning("after")
    lines = caplog.text
    assert ["before" in lines, "meanwhile" in lines, "after" in lines] == [False, True, False]


@pytest.mark.parametrize("minutes", ["000000001" + "9" * 20, "1" * 400])
async def test_log_time_with_many_digits_is_refused(store: Store, tmp_path: Path, minutes: str) -> None:
    executor = FleetExecutor(_unknown, None, tmp_path, store, "")
    with pytest.raises(Refused, match="the levels are"):
        await executor.execute("log-level", ("debug", "--minutes", minutes), "anna")


@pytest.mark.parametrize(
    "arguments", [("loud",), ("debug", "--minutes=0"), ("info", "--minutes=²"), ("info", "--minutes=99999")]
)
async def test_invalid_log_level_or_time_is_refused(store: Store, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="the levels are"):
        await FleetExecutor(_unknown, None, tmp_path, store, "").execute("log-level", arguments, "anna")

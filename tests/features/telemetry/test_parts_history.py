"""History of a gateway: its samples are in files at its stop; without history the library is not imported."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import check_output

import pytest

from edge.features.telemetry.history.reader import read_samples
from edge.features.telemetry.parts import open_history
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import SettingsError
from edge.store.background import Defects
from edge.store.client import Store
from tests.features.telemetry.plant import HOT, TelemetryClock, append, at_work, rules_of, until_drained
from tests.features.telemetry.test_processor import temp

pytestmark = pytest.mark.slow


async def test_evaluated_samples_are_in_files_at_the_end(store: Store, tmp_path: Path) -> None:
    settings = TelemetrySettings(history_days=7, history_directory=str(tmp_path))
    async with at_work(store, rules_of(HOT), TelemetryClock()) as processor, AsyncExitStack() as stack:
        writer = await open_history(stack, settings, processor, Defects())
        assert writer
        await append(store, temp(0, 70), temp(1, 71), number=1)
        await append(store, temp(0, 70), temp(1, 71), number=1)
        await append(store, temp(2, 72))
        await until_drained(store)
    assert [sample.value for sample in read_samples(tmp_path, ["*"])] == [70, 71, 72]
    assert writer.written == 3


async def test_history_is_not_written_unless_configured(store: Store) -> None:
    async with at_work(store, (), TelemetryClock()) as processor, AsyncExitStack() as stack:
        assert await open_history(stack, TelemetrySettings(), processor, Defects()) is None
        assert processor.sample_listeners == []


async def test_missing_history_library_is_a_settings_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "edge.features.telemetry.history.writer", None)
    async with at_work(store, (), TelemetryClock()) as processor, AsyncExitStack() as stack:
        with pytest.raises(SettingsError, match="history_days"):
            await open_history(stack, TelemetrySettings(history_days=1), processor, Defects())


def test_gateway_without_history_does_not_import_its_library() -> None:
    code = "import sys, edge.features.telemetry.parts, edge.features.telemetry.opcua.alarm_feed"
    code += "; print('nanoarrow' in sys.modules)"
    assert check_output([sys.executable, "-c", code], text=True).strip() == "False"

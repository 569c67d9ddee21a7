"""Opens the history of samples if it is configured; its modules are imported only then."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import SettingsError
from edge.links.background_task import background_task
from edge.store.background import Defects, restart_on_defect

if TYPE_CHECKING:
    from edge.features.telemetry.history.writer import HistoryWriter


async def open_history(
    stack: contextlib.AsyncExitStack, settings: TelemetrySettings, processor: RuleProcessor, defects: Defects
) -> "HistoryWriter | None":
    """Write the evaluated samples to files; None when no history is configured. Raises SettingsError."""
    if not settings.history_days:
        return None
    try:
        # The library is an extra of the package.
        from edge.features.telemetry.history.writer import HistoryLimits, HistoryWriter  # noqa: PLC0415
    except ImportError as error:
        problem = f"telemetry.history_days: needs a library that is not installed: {error}"
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[history]'") from None
    limits = HistoryLimits(settings.history_days, settings.history_bytes, settings.history_interval)
    writer = HistoryWriter(Path(settings.history_directory), limits)
    processor.sample_listeners.append(writer.append)
    work = restart_on_defect(defects, "history", writer.run)
    await stack.enter_async_context(background_task(work, "history"))
    return writer

"""Executes the operations of a gateway, each by the feature that adds it."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from edge.access.operations import OperationRunner, Report
from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.plant import Operation

ARCHIVE = ".tar.gz"
STAGE = 20.0
ALMOST = 95.0


async def run_operations(core: GatewayParts) -> None:
    """Execute due operations while this instance holds its lease."""
    executors = {type_: execute for opened in core.opened for type_, execute in opened.operations.items()}
    runner = OperationRunner(
        core.store,
        core.store.consumer,
        executors,
        _local_time,
        accepts=partial(accepts, core.settings),
    )
    await core.instance.lease_held.run_while_open(runner.run, "operations")


def accepts(settings: Settings, operation: Operation) -> bool:
    """Return whether an operation is for this gateway: a recording is for one that has the equipment."""
    gateway, equipment = operation.arguments.get("gateway", ""), operation.arguments.get("equipment", "")
    return gateway in {"", settings.gateway.name} and (not equipment or equipment in settings.southbound)


def stages(report: Report) -> Callable[[str], None]:
    """Return a function that reports each line as the next stage, a fifth of the work, until the work has ended."""
    done = 0.0

    def next_stage(line: str) -> None:
        nonlocal done
        done = min(ALMOST, done + STAGE)
        report(done, line)

    return next_stage


def remove_old_files(directory: Path, prefix: str, kept: int, suffix: str = ARCHIVE) -> None:
    """Remove all but the newest files of a type; their names sort by time."""
    for old in sorted(directory.glob(f"{prefix}-*{suffix}"))[:-kept]:
        old.unlink(missing_ok=True)


def prefix_of(core: GatewayParts, operation: Operation) -> str:
    """Return the beginning of the names of the files that an operation of this type writes."""
    return f"{core.settings.gateway.name}-{operation.type.value}"


def new_file(core: GatewayParts, operation: Operation, suffix: str = ARCHIVE) -> Path:
    """Return the path of the file that an operation writes. Raises Unavailable when its folder cannot be created."""
    directory = Path(core.settings.operations.directory)
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        advice = "Set [operations] directory to a folder that the service may write."
        raise Unavailable(
            Text.of("{directory} cannot be created: {reason}", directory=directory, reason=error.strerror), advice
        ) from error
    return directory / f"{prefix_of(core, operation)}-{_local_time():%Y%m%d-%H%M%S}-{operation.id[:4]}{suffix}"


def _local_time() -> datetime:
    return datetime.now().astimezone()

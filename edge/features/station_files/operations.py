"""The operations that export the station of the store to files, and apply files to it."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from edge.access.operations import Report
from edge.app.documents import GuardedStore
from edge.app.feature import Opened
from edge.app.operations import ALMOST, STAGE, new_file, prefix_of, remove_old_files
from edge.app.parts import GatewayParts, Works
from edge.features.station_files.apply import apply_files, load_objects, read_files
from edge.features.station_files.documents import StationDocuments
from edge.features.station_files.export import write_archive
from edge.features.station_files.objects import ObjectDifference, audit_action, audit_subject
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.plant import Operation, OperationType
from edge.store.reads import load_scopes


async def open_operations(_stack: AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Return what this gateway executes; its modules are imported where one runs."""
    return Opened(
        operations={OperationType.EXPORT: partial(_export, core), OperationType.IMPORT: partial(_import, core)}
    )


async def _export(core: GatewayParts, operation: Operation, report: Report) -> str:
    """Write the station of the store as station files; return the file."""
    file = new_file(core, operation)
    scopes = {*core.scopes, *await load_scopes(core.store)}
    objects = await load_objects(core.store, scopes, StationDocuments(core.settings, core.ports))
    report(STAGE, Text.of("{count} objects read", count=len(objects)))
    await asyncio.to_thread(write_archive, file, objects)
    remove_old_files(file.parent, prefix_of(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _import(core: GatewayParts, operation: Operation, report: Report) -> Text:
    """Apply the station files of this gateway to the store; return how many objects were changed."""
    if not core.settings.station.files:
        raise Refused("station", "[station] files is empty", "Name the folder of the station files.")
    documents = StationDocuments(core.settings, core.ports)
    read = await read_files(Path(core.settings.station.files), documents)
    changed = 0

    async def record(object_difference: ObjectDifference) -> None:
        nonlocal changed
        changed += 1
        report(min(ALMOST, float(changed)), str(object_difference.subject))
        core.trail.record(
            AuditRecord(
                at=now_ms(),
                kind="cli.call",
                instance=core.settings.gateway.name,
                user=operation.by,
                action=audit_action(object_difference),
                subject=audit_subject(object_difference),
                status="Good",
                comment=object_difference.file,
            )
        )

    delete = "delete" in operation.arguments
    target = GuardedStore(core.store, now_ms)
    await apply_files(target, core.instance.token, core.scopes, read, documents, record, delete=delete)
    return Text.of("1 object changed") if changed == 1 else Text.of("{changed} objects changed", changed=changed)

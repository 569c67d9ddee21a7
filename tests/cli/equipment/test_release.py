"""`edge equipment release` releases the stops that equipment never confirmed."""

import getpass
from pathlib import Path

from edge.sfc.signal import Phase
from edge.store import safing
from edge.store.client import Store
from edge.store.safing import SafingCommand
from tests.cli.calling import Edge


async def test_open_stop_is_released_in_the_name_of_the_user(edge: Edge, settings_file: Path, store: Store) -> None:
    with settings_file.open("a") as file:
        file.write('[southbound.wrench]\ntype_ids = ["tighten.v1"]\ntopic_prefix = "p"\n')
    open_stop = SafingCommand(
        phase=Phase.STOP,
        command_id="J1/R/tighten/1",
        type_id="tighten.v1",
        scope="station-1",
        job_id="J1",
        correlation_id="c",
        action="tighten",
        attempt=1,
        since=0,
    )
    await store.commit(safing.save(store.keys, open_stop))
    released = await edge("equipment", "release", "wrench", "--reason", "air cut off")
    assert (released.exit_code, released.output) == (0, "released: stop of J1/R/tighten/1, job J1\n")
    (kept,) = await safing.load_all(store)
    assert (kept.released_by, kept.release_reason) == (getpass.getuser(), "air cut off")
    again = await edge("equipment", "release", "wrench", "--reason", "air cut off", "--json")
    assert again.exit_code == 1
    assert (await edge("equipment", "release", "wretch", "--reason", "x")).exit_code == 2

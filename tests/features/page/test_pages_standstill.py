"""The pages while the store stands still: what is not known is not stated."""

import re

from edge.features.page.services import WebServices
from edge.model.job_state import Cause
from tests.features.page.serving import serving
from tests.station.plant import Clock, FakeEquipment, Plant, order, until_true
from tests.store.breaks import break_confirmation

_CLAIMS = re.compile(r"not sent|noch nicht|pas encore", re.IGNORECASE)


async def _send_without_note(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """Send the start of J2 to the tool in the last moment in which the primary is confirmed."""
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await until_true(lambda: any(command.job_id == "J2" for command in tool.commands))
    break_confirmation(plant.store)
    clock.now += 10_000


async def test_command_is_not_called_unsent_while_the_primary_is_not_confirmed(
    services: WebServices, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    """Each card said "not sent to wrench yet" while a majority of the sentinels was away, and the wrench turned."""
    await _send_without_note(plant, tool, clock)
    async with serving(services) as browser:
        alice = await browser.logged_in("alice")
        for language, words, label in (
            ("en", "may have been sent to wrench", "May have been sent"),
            ("de", "vielleicht an wrench gesendet", "Vielleicht gesendet"),
            ("fr", "peut-être envoyé à wrench", "Peut-être envoyée"),
        ):
            for path in ("/", "/job?id=J2"):
                page = (await alice.get(path, accept_language=language)).text
                assert words in page, path
                assert label in page, path
                assert not _CLAIMS.search(page), path
        detail = (await alice.get("/api/v1/jobs/J2")).json
        (waiting,) = detail["waits"]["actions"]
        assert (waiting["sent"], waiting["sending"]) == (True, "may have been sent")
        assert [action["sending"] for action in detail["actions"]] == ["may have been sent"]
        assert "may have been sent" in (await alice.get("/api/v1/jobs/J2/chart.svg")).text

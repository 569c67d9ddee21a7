"""Prompts over the HTTP API: listed in the language of the caller, answered by role, with their picture."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import FREE_OF_ADDRESS, Users
from edge.access.password_hash import hash_badge
from edge.access.users import write_user
from edge.features.prompts.answering import PromptContext, Prompts
from edge.features.prompts.page import PAGE
from edge.model.job_state import JobState
from edge.model.user import Role
from edge.station.active_runs import ActiveRuns
from tests.access.test_login_at_panels import ANNA, BADGE, PIN
from tests.features.page.conftest import users  # noqa: F401 - a fixture
from tests.features.page.serving import Browser, services_of, serving
from tests.features.page.test_api import _queued
from tests.features.page.test_caller_signatures import PANELS
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, prompt
from tests.station.plant import SCOPE, Plant

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def browser(plant: Plant, context: PromptContext, users: Users, tmp_path: Path) -> AsyncIterator[Browser]:  # noqa: F811
    """A client of the page of a station with people."""
    active = ActiveRuns(plant.runs, (SCOPE,))
    port = Prompts(context, (SCOPE,), active.loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port})) as found:
        yield found


async def test_prompt_is_listed_in_the_language_of_the_caller(plant: Plant, browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    assert (await eve.get("/api/v1/prompts")).json == {"prompts": []}
    await ask(plant, "J1", CHOOSE)
    titles = []
    for language in ("de", "en"):
        (only,) = (await eve.get("/api/v1/prompts", accept_language=language)).json["prompts"]
        titles.append(only["choices"][0]["title"])
    assert titles == ["Ja", "Yes"]


async def test_operator_answers_and_an_observer_may_not(plant: Plant, browser: Browser) -> None:
    await ask(plant, "J1", CHOOSE)
    eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
    (only,) = (await eve.get("/api/v1/prompts")).json["prompts"]
    address = f"/api/v1/prompts/{only['id']}/answer"
    assert (await eve.post(address, {"choice": "ok"})).status == 403
    wrong = await alice.post(address, {"choice": "no"})
    assert (wrong.status, wrong.json["kind"]) == (422, "invalid_answer")
    done = await alice.post(address, {"choice": "ok"}, idempotency_key="k1")
    assert (done.status, done.json["result"], done.json["by"]) == (200, {"choice": "ok"}, "alice")
    again = await alice.post(address, {"choice": "ok"}, idempotency_key="k1")
    assert (again.status, again.json) == (200, done.json)
    late = await alice.post(address, {"choice": "ok"})
    assert (late.status, late.json["kind"]) == (404, "unknown_prompt")
    assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_role_of_a_prompt_is_that_of_the_login(plant: Plant, browser: Browser) -> None:
    await ask(plant, "J1", prompt("confirm", role="engineer"))
    alice, max_ = await browser.logged_in("alice"), await browser.logged_in("max")
    (only,) = (await alice.get("/api/v1/prompts")).json["prompts"]
    address = f"/api/v1/prompts/{only['id']}/answer"
    refused = await alice.post(address, {})
    assert refused.json["reason"] == "the prompt needs the role engineer"
    assert (await max_.post(address, {})).status == 200


async def test_two_logins_confirm_one_after_the_other(plant: Plant, browser: Browser) -> None:
    await ask(plant, "J1", prompt("confirm", second_person=True))
    alice, max_ = await browser.logged_in("alice"), await browser.logged_in("max")
    (only,) = (await alice.get("/api/v1/prompts")).json["prompts"]
    address = f"/api/v1/prompts/{only['id']}/answer"
    assert (await alice.post(address, {})).json["awaits_second"]
    (only,) = (await max_.get("/api/v1/prompts")).json["prompts"]
    assert only["first_by"] == "alice"
    assert not (await max_.post(address, {})).json["awaits_second"]


async def test_picture_of_an_open_prompt_is_served(plant: Plant, browser: Browser, tmp_path: Path) -> None:
    await ask(plant, "J1", prompt("confirm", picture="cable.png"), {**CONFIRM, "name": "next", "step": "Next"})
    eve = await browser.logged_in("eve")
    (only,) = (await eve.get("/api/v1/prompts")).json["prompts"]
    address = f"/api/v1/prompts/{only['id']}/picture"
    missing = await eve.get(address)
    assert (missing.status, missing.json["kind"]) == (404, "unknown_picture")
    (tmp_path / "cable.png").write_bytes(b"\x89PNG")
    shown = await eve.get(address)
    assert (shown.status, shown.body, shown.headers["content-type"]) == (200, b"\x89PNG", "image/png")
    (tmp_path / "cable.png").write_bytes(bytes((4 << 20) + 1))
    assert (await eve.get(address)).json["kind"] == "too_large"
    assert (await eve.get("/api/v1/prompts/unknown/picture")).status == 404


async def test_gateway_without_people_has_no_prompts(plant: Plant, users: Users) -> None:  # noqa: F811
    async with serving(services_of(plant, users)) as browser:
        alice = await browser.logged_in("alice")
        assert (await alice.get("/api/v1/prompts")).json == {"prompts": []}
        assert (await alice.post("/api/v1/prompts/x/answer", {})).json["kind"] == "unknown_prompt"
    assert len(PAGE.operations) == 4


async def test_signed_answer_is_that_of_the_signer_at_a_panel(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
) -> None:
    write_user(tmp_path / "users", ANNA)
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    services = services_of(plant, users, ports={"prompts": port}, panels=PANELS, is_kiosk=True)
    async with serving(services) as browser:
        await ask(plant, "J1", prompt("confirm", sign="badge"))
        (only,) = (await browser.get("/api/v1/prompts")).json["prompts"]
        assert (only["sign"], only["needs_login"]) == ("badge", True)
        address = f"/api/v1/prompts/{only['id']}"
        alice = await browser.logged_in("alice")
        unsigned = await alice.post(f"{address}/answer", {})
        assert (unsigned.status, unsigned.json["kind"]) == (422, "no_signature")
        by_pin = await alice.post(f"{address}/sign", {"name": "anna", "pin": PIN})
        assert by_pin.json["kind"] == "no_signature"
        wrong = await alice.post(f"{address}/sign", {"badge": "04A1B2C3D6"})
        assert (wrong.status, wrong.json["kind"]) == (401, "unknown_badge")
        # The kiosk has no login: the signature is the login.
        done = await browser.post(f"{address}/sign", {"badge": BADGE})
        assert (done.status, done.json["by"]) == (200, "anna")
        assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_badge_is_not_taken_as_a_scanned_value_at_a_panel(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
) -> None:
    write_user(tmp_path / "users", ANNA)
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    services = services_of(plant, users, ports={"prompts": port}, panels=PANELS)
    async with serving(services) as browser:
        alice = await browser.logged_in("alice")
        await ask(plant, "J1", ENTER)
        (only,) = (await alice.get("/api/v1/prompts")).json["prompts"]
        address = f"/api/v1/prompts/{only['id']}/answer"
        refused = await alice.post(address, {"values": {"mass": "5", "serial": BADGE}})
        assert (refused.status, refused.json["kind"]) == (409, "is_badge")
        assert all(BADGE not in str(record) for record in _queued(services.audit.trail))
        done = await alice.post(address, {"values": {"mass": "5", "serial": "04A1B2C3D6"}}, idempotency_key="k")
        assert done.json["result"]["serial"] == "04A1B2C3D6"
        assert (await alice.post(address, {"values": {}}, idempotency_key="k")).json == done.json


async def test_refused_answers_recognize_badges_a_few_times_only(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
) -> None:
    write_user(tmp_path / "users", ANNA)
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port}, panels=PANELS)) as browser:
        alice = await browser.logged_in("alice")
        await ask(plant, "J1", ENTER)
        (only,) = (await alice.get("/api/v1/prompts")).json["prompts"]
        address = f"/api/v1/prompts/{only['id']}/answer"
        wrong = {"values": {"mass": "none", "serial": BADGE}}
        assert (await alice.post(address, wrong)).json["kind"] == "is_badge"
        for number in range(FREE_OF_ADDRESS):
            guess = {"values": {"mass": "none", "serial": f"04A1B2C3{number:02}"}}
            assert (await alice.post(address, guess)).json["kind"] == "invalid_answer"
        assert (await alice.post(address, wrong)).json["kind"] == "invalid_answer"
        # The panel takes badges and codes as before.
        whole = {"values": {"mass": "5", "serial": BADGE}}
        assert (await alice.post(address, whole)).json["kind"] == "is_badge"
        assert (await browser.post("/api/v1/session/panel", {"badge": BADGE})).status == 200
        assert (await alice.post(address, {"values": {"mass": "5", "serial": "04A1B2C3D6"}})).status == 200


async def test_signer_needs_the_role_of_the_prompt(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
) -> None:
    write_user(tmp_path / "users", ANNA)
    write_user(tmp_path / "users", replace(ANNA, name="obs", role=Role.OBSERVER, badge=""))
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port}, panels=PANELS)) as browser:
        max_ = await browser.logged_in("max")
        await ask(plant, "J1", prompt("confirm", sign="any", role="engineer"))
        await ask(plant, "J2", prompt("confirm", sign="any"))
        first, second = (await max_.get("/api/v1/prompts")).json["prompts"]
        refused = await max_.post(f"/api/v1/prompts/{first['id']}/sign", {"badge": BADGE})
        assert refused.json["kind"] == "forbidden"
        refused = await max_.post(f"/api/v1/prompts/{second['id']}/sign", {"name": "obs", "pin": PIN})
        assert refused.json["kind"] == "forbidden"


async def test_second_person_signs_as_the_first_one_did(
    plant: Plant,
    context: PromptContext,
    users: Users,  # noqa: F811
    tmp_path: Path,
) -> None:
    write_user(tmp_path / "users", ANNA)
    write_user(tmp_path / "users", replace(ANNA, name="ben", badge=hash_badge("04A1B2C3D5", [ANNA.badge])))
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port}, panels=PANELS, is_kiosk=True)) as browser:
        await ask(plant, "J1", prompt("confirm", sign="any", second_person=True))
        (only,) = (await browser.get("/api/v1/prompts")).json["prompts"]
        address = f"/api/v1/prompts/{only['id']}/sign"
        for given, waits in (({"badge": BADGE}, True), ({"name": "anna", "pin": PIN}, True)):
            assert (await browser.post(address, given)).json["awaits_second"] is waits
        assert (await browser.post(address, {"badge": "04A1B2C3D5"})).json["awaits_second"] is False
        assert (await plant.job("J1")).status.state is JobState.ENDED

"""The pages of drafts: who may open them, what they offer, and what they say about a condition."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any, TypeVar

import msgspec
import pytest
import pytest_asyncio
from msgspec import Struct
from msgspec.structs import replace

from edge.access.login import Users
from edge.expression.syntax import MAX_LENGTH
from edge.features.page.pages import templates
from edge.features.recipes.desk import Desk
from edge.features.recipes.editor_page import DRAFTS, EDITOR
from edge.features.recipes.release import release_recipe
from edge.features.recipes.workbench import ask_here
from edge.features.recipes.workbench_requests import ListActions, ReadCondition, Request
from edge.foundation.errors import Unavailable
from edge.station.settings import SettingSource
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import SETTINGS, Browser, services_of, serving
from tests.features.recipes.desks import ANNA, SCOPE, TEXT, desk_on
from tests.station.plant import TIGHTEN, Plant

T = TypeVar("T", bound=Struct)
TIGHT: Any = msgspec.json.decode(TEXT.replace("a.v1", TIGHTEN))


@pytest_asyncio.fixture
async def engineer(plant: Plant, users: Users) -> AsyncIterator[Browser]:
    """An engineer at a station whose recipe WM has one revision."""
    desk = desk_on(plant.store)
    await release_recipe(desk, SCOPE, "WM", TIGHT, "first", ANNA, SettingSource.PAGE)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        yield await browser.logged_in("max")


async def begin(engineer: Browser, work_master: str = "WM") -> str:
    reply = await engineer.post("/api/v1/recipe-drafts", {"scope": SCOPE, "work_master": work_master})
    draft: str = reply.json["draft"]["id"]
    return draft


async def test_editor_offers_the_types_that_recipes_use(engineer: Browser) -> None:
    page = (await engineer.get(f"{EDITOR}?draft={await begin(engineer)}")).text
    (found,) = re.findall(r"data-offers='([^']*)'", page)
    offers = {offer["type_id"]: offer for offer in msgspec.json.decode(unescape(found))}
    assert offers[TIGHTEN]["interaction"] == "push_command"


async def test_gateway_parses_no_recipe_for_the_editor(plant: Plant, users: Users) -> None:
    """A recipe of 225 KB held the event loop for 43 ms at each opening, and after each key in a condition."""
    requests: list[type] = []

    async def ask(request: Request, answer: type[T]) -> T:
        requests.append(type(request))
        return await ask_here(request, answer)

    desk = desk_on(plant.store, ask=ask)
    await release_recipe(desk, SCOPE, "WM", TIGHT, "first", ANNA, SettingSource.PAGE)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        engineer = await browser.logged_in("max")
        draft = await begin(engineer)
        requests.clear()
        await engineer.get(f"{EDITOR}?draft={draft}")
        await engineer.post(f"/api/v1/recipe-drafts/{draft}/expression", {"condition": "ready"})
        assert requests == [ListActions, ReadCondition]


async def test_draft_is_readable_while_the_workbench_does_not_answer(plant: Plant, users: Users) -> None:
    """The page failed as a whole, without a word about the draft."""

    async def ask(_request: Request, _answer: type[T]) -> T:
        raise Unavailable("the process that checks recipes has ended", "Look at the log of the gateway.")

    draft = await desk_on(plant.store).create(SCOPE, "WM", ANNA, TEXT)
    desk = desk_on(plant.store, ask=ask)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        reply = await (await browser.logged_in("max")).get(f"{EDITOR}?draft={draft.id}")
        assert reply.status == 200
        assert "The draft cannot be edited now" in reply.text
        assert "the process that checks recipes has ended Look at the log of the gateway." in reply.text
        (shown,) = re.findall(r"<textarea id=\"text\" readonly[^>]*>(.*)</textarea>", reply.text, re.DOTALL)
        assert unescape(shown) == TEXT


async def test_condition_is_as_long_as_an_expression(engineer: Browser) -> None:
    draft = await begin(engineer)
    page = (await engineer.get(f"{EDITOR}?draft={draft}")).text
    most = re.findall(r'<textarea name="(?:condition|verdict)" rows="2" maxlength="(\d+)"', page)
    assert set(most) == {str(MAX_LENGTH)}
    body = {"condition": "x" * (MAX_LENGTH + 1)}
    assert (await engineer.post(f"/api/v1/recipe-drafts/{draft}/expression", body)).status == 422


async def test_editor_and_list_are_for_engineers(engineer: Browser) -> None:
    draft = await begin(engineer)
    assert (await engineer.get(f"{EDITOR}?draft=unknown")).status == 404
    assert draft in (await engineer.get(DRAFTS)).text
    assert draft not in (await engineer.get(f"{DRAFTS}?scope={SCOPE}&id=OTHER")).text
    for name in ("eve", "alice"):
        reader = await engineer.logged_in(name)
        for address in (DRAFTS, f"{EDITOR}?draft={draft}"):
            assert (await reader.get(address)).status == 403


async def test_list_of_drafts_has_those_of_its_scope_only(plant: Plant, users: Users) -> None:
    gateway = replace(SETTINGS.gateway, scopes=(SCOPE, "station-2"))
    desk = Desk(plant.store, replace(SETTINGS, gateway=gateway), ask_here)
    here, there = [await desk.create(scope, "WM", ANNA, TEXT) for scope in gateway.scopes]
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        engineer = await browser.logged_in("max")
        page = (await engineer.get(f"{DRAFTS}?scope=station-2&id=WM")).text
        assert (here.id in page, there.id in page) == (False, True)
        page = (await engineer.get(DRAFTS)).text
        assert (here.id in page, there.id in page) == (True, True)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ("actions.a.done and speed > 3", ""),
        ("actions.b.done", "unknown action 'b' (at character 1)"),
        ("speed >", "at character"),
    ],
)
async def test_condition_is_checked_with_the_names_of_the_draft(engineer: Browser, condition: str, fault: str) -> None:
    at = f"/api/v1/recipe-drafts/{await begin(engineer)}/expression"
    answer = (await engineer.post(at, {"condition": condition})).json
    assert fault in answer["fault"]
    assert bool(fault) == bool(answer["fault"])


async def test_faulty_text_has_no_names_and_still_an_answer(engineer: Browser) -> None:
    draft = await begin(engineer)
    at = f"/api/v1/recipe-drafts/{draft}"
    await engineer.post(f"{at}/text", {"version": 1, "text": "{"})
    assert "unknown action" in (await engineer.post(f"{at}/expression", {"condition": "actions.a.done"})).json["fault"]
    assert (await engineer.get(f"{EDITOR}?draft={draft}")).status == 200


async def test_scripts_of_the_editor_have_an_address_of_their_content(engineer: Browser) -> None:
    found: Any = templates().globals["static"]
    address = found["recipes"]
    assert re.fullmatch(r"/static/recipes-[0-9a-f]{12}", address)
    script = await engineer.get(f"{address}/editor.js")
    assert (script.status, script.headers["content-type"].partition(";")[0]) == (200, "text/javascript")
    assert (await engineer.get(f"{address}/draft.js")).status == 200

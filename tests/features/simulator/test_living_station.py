"""The station at work of the demo: its recipes fit its equipment, and a person who opens the page finds it at work."""

import asyncio
import http.client
import io
import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.features.simulator.demo import DEVICES, open_demo
from edge.features.simulator.demo_parts import DemoPage
from edge.features.simulator.demo_view import view_on
from edge.features.simulator.living_station import living_orders, living_settings
from edge.features.simulator.script import parse_script
from edge.features.simulator.virtual_simulation import simulate
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.model.recipe import parse_recipe
from tests.features.simulator.test_demo_devices import chosen, recipe_data_of

_LANGUAGES = {"en", "de", "fr"}


@pytest.mark.parametrize("over", DEVICES)
def test_every_action_of_the_living_station_has_its_equipment(over: str, tmp_path: Path) -> None:
    devices = chosen(over)
    file = tmp_path / "edge.toml"
    sections = "\n".join(device.section() for device in devices.every)
    file.write_text(sections + living_settings(tmp_path))
    southbound = load_settings(file, {}, declared_sections()).southbound
    taken = {type_id for section in southbound.values() for type_id in section.type_ids}
    for living_order in living_orders(recipe_data_of(devices)):
        recipe, faults = parse_recipe(living_order.recipe)
        assert recipe is not None, faults
        assert {action.type_id for action in recipe.actions} <= taken
        titles = [
            living_order.recipe["title"],
            *(step["title"] for step in living_order.recipe["steps"] if "title" in step),
        ]
        assert all(set(title) == _LANGUAGES for title in titles)


def test_unanswered_prompt_of_the_demo_raises_no_alarm(tmp_path: Path) -> None:
    orders = living_orders(recipe_data_of(chosen("mqtt")))
    no_answer = parse_script({"equipment": [{"type_id": "com.example.station.operator.choose.v1", "result": "none"}]})
    trace = simulate(next(order.recipe for order in orders if order.prefix == "RING"), no_answer)
    assert (trace.final, trace.verdict_by_job) == ("completed", {"J1": "not_ok"})
    living_settings(tmp_path)
    rules, faults = parse_rules(json.loads((tmp_path / "rules.json").read_text()))
    assert not faults
    # The clock of the machine that shows the demo is not part of the scene.
    assert [rule.id for rule in rules] == ["oil-low", "gateway.clock_unsynchronised"]


def _read(page: DemoPage, path: str) -> Any:
    """Return what the page answers; None while it refuses, as for too many requests."""
    connection = http.client.HTTPConnection("localhost", page.port, timeout=60)
    connection.request("GET", f"/api/v1/{path}")
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return json.loads(content) if answer.status == HTTPStatus.OK else None


@pytest.mark.slow
async def test_page_of_the_demo_shows_a_station_at_work() -> None:
    page = DemoPage()

    async def until(path: str, is_seen: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(120):
            while True:
                answer = await asyncio.to_thread(_read, page, path)
                if answer is not None and is_seen(answer):
                    return answer
                await asyncio.sleep(0.05)  # a kiosk may send sixty requests a second

    async with open_demo(view_on(Console(file=io.StringIO())), page=page):
        await until("prompts", lambda answer: bool(answer["prompts"]))
        jobs = (await until("jobs", lambda answer: bool(answer["jobs"])))["jobs"]
        assert [job["state"] for job in jobs if job["job_order_id"] == "AXLE-0003"] == ["Running"]
        alarms = (await until("alarms", lambda answer: bool(answer["alarms"])))["alarms"]
        assert "Oil of the press is low: 12 %" in [alarm["message"] for alarm in alarms]
        trend = "tags/press.oil_temperature/trend"
        await until(trend, lambda answer: len({point["value"] for point in answer["points"]}) > 1)
        await until("results", lambda answer: "not_ok" in [job["verdict"] for job in answer["jobs"]])

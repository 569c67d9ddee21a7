"""A station at work for who looks at the page: jobs keep coming, people are asked, an alarm stands, a trend moves."""

import asyncio
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from edge.config import MqttSettings
from edge.features.simulator.demo_view import DemoView
from edge.features.simulator.mes import Mes
from edge.foundation.errors import Refused
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.isa95 import Equipment, JobOrder, LocalizedText, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA

PERIOD_S: Final = 20.0
"""From the start of a job to that of the next."""
_FIRST: Final = 2
"""The number of the first order of the loop: another job has the number 1."""
PRESS: Final = "press"
PRESS_TYPES: Final = ("com.example.station.press.v1", "com.example.station.press_bearing.v1")
FAILING_TYPE: Final = PRESS_TYPES[1]
"""The press answers this type with an error, so that the page shows what is not OK."""
WORK_S: Final = 2.5
"""How long each tool works, so that a person sees it."""
_OPERATOR: Final = "operator"
_OIL: Final = "plant/press/oil"
_SAMPLE_S: Final = 1.0
_BOLTS: Final = 4
_LOW_PERCENT: Final = 15


class LivingOrder(Struct, frozen=True):
    """What the MES orders: the prefix of the ids, the Work Master with its recipe, and the text of the order."""

    prefix: str
    work_master: str
    text: str
    recipe: dict[str, Any]


def press_arguments(broker: str) -> tuple[str, ...]:
    """Return the arguments of `edge sim` for the press of the station."""
    return ("controller", "--url", broker, "--name", PRESS, "--delay", f"{WORK_S:g}", "--fail", FAILING_TYPE)


def living_settings(directory: Path) -> str:
    """Write the rules into a directory, and return the sections of the settings that a station at work needs."""
    text = partial(json.dumps, ensure_ascii=False)
    rules = directory / "rules.json"
    rules.write_text(text([_OIL_RULE, _CLOCK_RULE]))
    sources = "".join(
        f'\n[source.{member}]\ntopic = {text(_OIL)}\npointer = "/{member}"\ntag = "press.oil_{member}"\n'
        for member in ("temperature", "level")
    )
    return f"""
[southbound.{PRESS}]
kind = "mqtt"
type_ids = {text(PRESS_TYPES)}

[southbound.{_OPERATOR}]
kind = "operator"
type_ids = ["com.example.station.operator.choose.v1"]

[archive]
directory = {text(str(directory / "results"))}
interval = 2

[telemetry]
record = "all"
rules = {text(str(rules))}
{sources}"""


_OIL_RULE: Final[Mapping[str, Any]] = {
    "id": "oil-low",
    "kind": "limit",
    "tag": "press.oil_level",
    "limits": {"low": {"at": _LOW_PERCENT, "severity": 500}},
    "message": {
        "en": "Oil of the press is low: {value} %",
        "de": "Öl der Presse ist niedrig: {value} %",
        "fr": "Niveau d'huile de la presse bas : {value} %",
    },
}


_CLOCK_RULE: Final[Mapping[str, Any]] = {
    "id": "gateway.clock_unsynchronised",
    "kind": "limit",
    "tag": "gateway.clock_synchronised",
    "limits": {"low": {"at": 0.5, "severity": 300}},
    "on_delay_seconds": 86_400,
}
"""The clock of the machine that shows the demo is not part of the scene: one alarm stands, that of the oil."""


def living_orders(scene_recipe: Mapping[str, Any]) -> Sequence[LivingOrder]:
    """Return the orders of a round: two ask a person, one fails, the others use the tools of the scene's recipe."""
    axle = LivingOrder("AXLE", "WM-AXLE-BOLTS", "Rear axle", _axle(scene_recipe))
    ring = LivingOrder("RING", "WM-SEAL-RING", "Seal ring", _stored("seal-ring.json"))
    bearing = LivingOrder("BEARING", "WM-BEARING", "Bearing", _stored("bearing.json"))
    return (ring, axle, bearing, ring, axle, axle)


def _stored(file: str) -> dict[str, Any]:
    content = resources.files("edge.features.simulator").joinpath("recipes", file).read_bytes()
    recipe: dict[str, Any] = json.loads(content)
    return recipe


_TITLES: Final[Mapping[str, Mapping[str, str]]] = {
    "position_axle": {"en": "Seat", "de": "Einlegen", "fr": "Pose"},
    "tighten": {"en": "Tighten", "de": "Anziehen", "fr": "Serrage"},
    "camera_qa": {"en": "Camera", "de": "Kamera", "fr": "Caméra"},
}
"""The actions of the axle, by their names in the recipe of the scene."""


def _axle(scene_recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe that seats the axle, tightens its bolts one by one, and asks the camera, as the scene does."""
    known = {action["name"]: action for action in scene_recipe["actions"]}
    steps = [
        _step("Seat", "position_axle", "Seat the axle", "Achse einlegen", "Poser l'essieu"),
        *(
            _step(f"Bolt{n}", "tighten", f"Bolt {n} of {_BOLTS}", f"Schraube {n} von {_BOLTS}", f"Vis {n} sur {_BOLTS}")
            for n in range(1, _BOLTS + 1)
        ),
        _step("Look", "camera_qa", "Camera looks", "Kamera prüft", "La caméra contrôle"),
        ({"name": "Done", "title": {"en": "Done", "de": "Fertig", "fr": "Terminé"}}, ""),
    ]
    names = [step["name"] for step, _ in steps]
    return {
        "title": {"en": "Fit the rear axle", "de": "Hinterachse montieren", "fr": "Monter l'essieu arrière"},
        "steps": [step | ({"initial": True} if step["name"] == names[0] else {}) for step, _ in steps],
        "transitions": [
            {"source": source, "target": target, "condition": "always"} for source, target in itertools.pairwise(names)
        ],
        "actions": [
            known[action] | {"name": f"{action}_{step['name'].lower()}", "step": step["name"], "title": _TITLES[action]}
            for step, action in steps
            if action
        ],
    }


def _step(name: str, action: str, english: str, german: str, french: str) -> tuple[dict[str, Any], str]:
    return {"name": name, "title": {"en": english, "de": german, "fr": french}}, action


async def live(
    mes: Mes, view: DemoView, broker: str, scope: str, scene_recipe: Mapping[str, Any], equipment: Sequence[str]
) -> None:
    """Order jobs and send samples until cancelled. Raises Refused with the faults of a recipe."""
    orders = living_orders(scene_recipe)
    named = [Equipment(id=name) for name in (*equipment, PRESS, _OPERATOR)]
    await mes.configure(scope, "equipment", named)
    for order in {order.work_master: order for order in orders}.values():
        description = LocalizedText(text=order.text, locale="en")
        master = WorkMaster(
            id=order.work_master, description=description, data=order.recipe, dataschema=RECIPE_DATASCHEMA
        )
        await mes.configure(scope, "workmaster", master)
    async with open_session(MqttSettings(url=broker), "press-oil") as oil, TaskGroup() as tasks:
        tasks.create_task(_send_samples(oil), name="oil of the press")
        tasks.create_task(_order_jobs(mes, view, scope, orders), name="orders")


async def _order_jobs(mes: Mes, view: DemoView, scope: str, orders: Sequence[LivingOrder]) -> None:
    """Order the jobs of a round again and again; a refusal, as during maintenance, is reported, and the next follows.

    The first two jobs begin together: one asks a person while the other runs.
    """
    for number, order in enumerate(itertools.cycle(orders), _FIRST):
        try:
            await _store_and_start(mes, scope, order, number)
        except Refused as refusal:
            view.report("MES", refusal.message)
        if number > _FIRST:
            await asyncio.sleep(PERIOD_S)


async def _store_and_start(mes: Mes, scope: str, order: LivingOrder, number: int) -> None:
    job_order = JobOrder(
        job_order_id=f"{order.prefix}-{number:04}",
        description=(LocalizedText(text=order.text, locale="en"),),
        work_master_id=(WorkMaster(id=order.work_master),),
        job_order_parameters=(Parameter(id="vin", value=f"WVWZZZ1JZXW{number:06}"),),
    )
    answer = await mes.call(scope, "StoreAndStart", OrderCall(job_order=job_order))
    if answer.status is not ReturnStatus.NO_ERROR:
        reasons = answer.reasons or answer.status.name
        raise Refused("job", Text.of("the station did not take the job: {reasons}", reasons=reasons))


async def _send_samples(oil: MqttSession) -> None:
    for temperature in _temperatures():
        payload = {"temperature": temperature, "level": _LOW_PERCENT - 3}
        await oil.send(Message(_OIL, json.dumps(payload).encode()))
        await asyncio.sleep(_SAMPLE_S)


def _temperatures() -> Iterator[float]:
    """Yield degrees Celsius of the oil: it warms and cools within two minutes, with the ripple of a real sensor."""
    for second in itertools.count():
        ripple = 0.4 * math.sin(second * 2.4)
        yield round(52.0 + 6.0 * math.sin(second * math.tau / 120) + ripple, 1)

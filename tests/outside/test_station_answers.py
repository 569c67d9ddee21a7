"""A code of a reader and a button answer the prompts of their scope, each reading and each press once."""

import contextlib
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, SCOPE, wait_for
from tests.outside.test_decisions import _edge
from tests.outside.test_prompts import (
    CALL,
    MUST_LOG_IN,
    PEOPLE,
    PREFIX,
    asking,
    prompts,
    resolved_by,
    result,
    wait_for_prompt,
)
from tests.outside.test_reader import Readers

pytestmark = pytest.mark.slow

BUTTON, CODE = "com.example.button.v1", "com.example.code.v1"


def settings_of(readers: Readers) -> str:
    """Return the people, a reader, and what answers prompts."""
    return (
        f'{PEOPLE}\n[prompts]\nbuttons = ["{BUTTON}"]\ncodes = ["{CODE}"]\n'
        f'[southbound.scanner]\nkind = "reader"\ntype_ids = ["{CODE}"]\n'
        f'url = "tcp://127.0.0.1:{readers.port}"\ndedupe = 0.0\n'
    )


@pytest.fixture
def readers() -> Iterator[Readers]:
    """The reader of the plant."""
    with contextlib.closing(Readers()) as opened:
        yield opened


@pytest.fixture
def further_settings(readers: Readers) -> str:
    """The reader, the button and the people at the station."""
    return settings_of(readers)


def press(plant: Plant, press_id: str, scope: str = SCOPE) -> None:
    """Press the button of a device of another vendor."""
    attributes = {"specversion": "1.0", "id": press_id, "source": "/desk", "type": BUTTON, "subject": scope}
    plant.wrench.client.publish(f"{plant.wrench.topic}/events", "{}", attributes)


def three() -> dict[str, Any]:
    """Return a recipe that asks for a code, for a choice, and for a confirmation."""
    parts = {
        "Scan": ("enter", {"fields": [{"name": "serial", "type": "scan"}]}),
        "Inspect": ("choose", {"choices": [{"value": "ok"}, {"value": "defective"}]}),
        "Confirm": ("confirm", {}),
        "Again": ("confirm", {}),
    }
    (first,) = asking("confirm")["actions"]
    actions = [
        first
        | {"name": step.lower(), "step": step, "type_id": f"{PREFIX}.{kind}.v1"}
        | {"parameters": {"title": step} | more}
        for step, (kind, more) in parts.items()
    ]
    steps = [*parts, "Done"]
    return {
        "steps": [{"name": step, "initial": step == "Scan"} for step in steps],
        "transitions": [
            {"source": source, "target": target, "condition": "always"} for source, target in itertools.pairwise(steps)
        ],
        "actions": actions,
    }


def asked(plant: Plant, action: str) -> None:
    """Wait until this prompt is the only one."""
    wait_for(lambda: [prompt["action"] for prompt in prompts(plant)] == [action], f"{action} is asked", 60)


def test_codes_and_a_button_answer_the_prompts_of_a_job(plant: Plant, readers: Readers) -> None:
    plant.mes.configure(recipe=three())
    assert plant.mes.start_job("J1").status == 1
    asked(plant, "scan")
    readers.scan("S\x1d1")
    asked(plant, "inspect")
    readers.scan("neither")
    readers.scan("defective")
    asked(plant, "confirm")
    press(plant, "1")
    asked(plant, "again")
    press(plant, "1")
    plant.mes.ask(CALL.format("List"), {})
    asked(plant, "again")
    press(plant, "2")
    plant.mes.wait_for_state("J1", "Ended", 60)
    found = result(plant)
    assert found["scan"]["Subparameters"] == [{"ID": "serial", "Value": "S\x1d1"}]
    assert found["inspect"]["Subparameters"] == [{"ID": "choice", "Value": "defective"}]
    assert resolved_by(plant) == ["scanner", "scanner", "wrench", "wrench"]


@pytest.mark.parametrize("parameters", MUST_LOG_IN, ids=str)
def test_a_button_does_not_answer_for_a_person(plant: Plant, readers: Readers, parameters: dict[str, Any]) -> None:
    del readers
    plant.mes.configure(recipe=asking("confirm", **parameters))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    press(plant, "1")
    wait_for(lambda: "logged in" in plant.gateway.log.read_text(), "the refusal is logged")
    assert prompts(plant) == [prompt]


def test_a_scanned_code_does_not_sign(plant: Plant, readers: Readers) -> None:
    fields = [{"name": "serial", "type": "scan"}]
    plant.mes.configure(recipe=asking("enter", fields=fields, sign="badge"))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    readers.scan("04A1B2C3")
    wait_for(lambda: "logged in" in plant.gateway.log.read_text(), "the refusal is logged")
    assert prompts(plant) == [prompt]


def test_settings_without_people_refuse_buttons(tmp_path: Path) -> None:
    settings = tmp_path / "edge.toml"
    settings.write_text(f'[prompts]\nbuttons = ["{BUTTON}"]\ncodes = ["{BUTTON}"]\n')
    command = [str(EDGE), "check", "settings", str(settings)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode != 0
    printed = checked.stdout + checked.stderr
    assert "no equipment is of the kind operator" in printed
    assert f"{BUTTON} is given 2 times" in printed


@pytest.mark.parametrize("point", ["decided", "committed", "handled"])
def test_a_press_during_a_kill_counts_exactly_once(plant: Plant, readers: Readers, point: str) -> None:
    del readers
    plant.mes.configure(
        recipe=three()
        | {"steps": [{"name": "Confirm", "initial": True}, {"name": "Again"}]}
        | {
            "transitions": [{"source": "Confirm", "target": "Again", "condition": "always"}],
            "actions": [action for action in three()["actions"] if action["step"] in {"Confirm", "Again"}],
        }
    )
    assert plant.mes.start_job("J1").status == 1
    asked(plant, "confirm")
    plant.gateway.stop()
    # The device publishes once; the broker delivers it again to the gateway after each kill.
    press(plant, "1")
    for count in (1, 2, 3, 4, 5):
        plant.gateway.environment["EDGE_FAULT"] = f"{point}:{count}"
        with contextlib.suppress(AssertionError):
            plant.gateway.start()
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not plant.gateway.is_alive, "the gateway is killed", 3)
        plant.gateway.kill()
    del plant.gateway.environment["EDGE_FAULT"]
    plant.gateway.start()
    asked(plant, "again")
    history = json.loads(_edge(plant, "jobs", "show", "J1", "--json").stdout)
    assert json.dumps(history).count('"resolved_by": "wrench"') <= 1

"""What tests of the editor share: a screen with a draft, and what a person does there."""

import json
from typing import Any

from edge.features.recipes.changes import Change
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.editor_page import EDITOR
from edge.model.json_value import read_json_text
from tests.features.page.chromium import Chromium
from tests.features.page.serving import Browser
from tests.features.recipes.desks import BEN, SCOPE, TEXT

MAX = Author("max", "en")
READY = "document.getElementById('editor')?.dataset.ready !== undefined"
FORM = "#properties form:not([hidden])"
SMALL_TARGETS = """[...document.querySelectorAll("#editor button, #editor input:not([type=checkbox]), #editor select,"
  + " #editor .choice, #editor summary")]
  .filter((each) => each.checkVisibility({visibilityProperty: true}) && !each.matches(".hidden"))
  .filter((each) => each.getBoundingClientRect().height < 43.5).map((each) => each.outerHTML.slice(0, 100))"""


async def recipe_of(desk: Desk, draft: str) -> Any:
    return read_json_text((await desk.text(await desk.draft(draft))).encode())


async def open_draft(browser: Browser, screen: Chromium, desk: Desk, text: str | None = TEXT) -> str:
    """Open the editor with a new draft; return its id."""
    draft = (await desk.create(SCOPE, "WM", MAX, text)).id
    await screen.go(f"{browser.origin}{EDITOR}?draft={draft}")
    await screen.until(READY)
    return draft


async def change_unseen(screen: Chromium, desk: Desk, draft: str, seen: int, change: Change) -> None:
    """Change the draft as another engineer, without the page showing it: it reads itself again after it was opened."""
    await screen.run("addEventListener('redraw', (event) => event.stopImmediatePropagation(), true)")
    # What it has begun to read comes before.
    await screen.run(f"fetch('/api/v1/recipe-drafts/{draft}').then((answer) => answer.text())")
    await desk.edit(draft, seen, change, BEN)


def element(kind: str, key: str) -> str:
    return f".target[data-kind={kind}][data-key={key!r}]"


async def version(screen: Chromium, number: int) -> None:
    """Wait until the page shows a version."""
    await screen.until(f"document.getElementById('saved').textContent.endsWith(' {number}')")


KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Insert": 45, "Delete": 46}
CONTROL = 2


async def key(screen: Chromium, name: str, modifiers: int = 0) -> None:
    """Press a key that `Chromium.press` does not know."""
    pressed = {"key": name, "windowsVirtualKeyCode": KEYS.get(name, 0), "modifiers": modifiers}
    await screen.call("Input.dispatchKeyEvent", type="rawKeyDown", **pressed)
    await screen.call("Input.dispatchKeyEvent", type="keyUp", **pressed)


async def selected(screen: Chromium, name: str) -> None:
    """Wait until an element has the focus in the chart."""
    await screen.until(f"document.activeElement.dataset.key === {name!r}")


async def edited(screen: Chromium, field: str) -> None:
    """Wait until a field has the focus."""
    await screen.until(f"document.activeElement.name === {field!r}")


async def drawn(screen: Chromium, step: str) -> None:
    """Wait until the chart has a step."""
    await screen.until(f"document.querySelector({json.dumps(element('step', step))})")


async def pick(screen: Chromium, selector: str) -> None:
    """Scroll the chart to an element, and click it."""
    target = f"document.querySelector({json.dumps(selector)})"
    await screen.until(target)
    await screen.run(f"{target}.scrollIntoView({{block: 'center', inline: 'center'}})")
    await screen.click(selector)


async def fill(screen: Chromium, field: str, text: str) -> None:
    """Write into a field of the properties, chosen by the mouse."""
    await pick(screen, f"{FORM} [name={field}]")
    await screen.run("document.activeElement.select()")
    await screen.type(text)


async def choose(screen: Chromium, field: str, value: str) -> None:
    """Choose from a list, as the mouse does: the list of the system cannot be seen from here."""
    await screen.run(
        f"(() => {{ const list = document.querySelector('dialog[open] [name={field}], #properties form:not([hidden])"
        f" [name={field}]'); list.value = {value!r}; for (const type of ['input', 'change'])"
        " list.dispatchEvent(new Event(type, {bubbles: true})) })()"
    )


async def go_to(screen: Chromium, *path: tuple[str, str]) -> None:
    """Go along the chart from its first element: with an arrow until an element, then with another one."""
    await screen.until("document.activeElement.matches('.target')")
    await screen.press("Home")
    for arrow, step in path:
        for _ in range(12):
            if await screen.run("document.activeElement.dataset.key") == step:
                break
            await key(screen, arrow)
        else:
            raise AssertionError(step)

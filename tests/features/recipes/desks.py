"""Builds the desk of a station for the tests of drafts and releases."""

from collections.abc import Callable, Sequence

import msgspec

from edge.config import GatewaySettings, Settings
from edge.features.recipes.desk import Ask, Author, Desk
from edge.features.recipes.settings import RecipesSettings
from edge.features.recipes.workbench import ask_here
from edge.features.recipes.workbench_requests import text_of
from edge.foundation.text import Text
from edge.store.client import Store
from tests.sfc.recipes import action, chain, recipe, transition

SCOPE = "station-1"
ANNA = Author("anna", "en")
BEN = Author("ben", "en")
SOUND = chain("A B", action("a", "A"))
TEXT = text_of(SOUND)
STUCK = text_of(recipe("A B", [transition("A", "B", "actions.a.failed")], [action("a", "A")]))


def desk_on(
    store: Store, findings: Callable[[str], Sequence[Text]] = lambda _: (), ask: Ask = ask_here, **of_recipes: object
) -> Desk:
    """Return a desk that checks in this process, with settings of `[recipes]`."""
    section = msgspec.convert(of_recipes, RecipesSettings)
    settings = Settings(gateway=GatewaySettings(scopes=(SCOPE,)), sections={"recipes": section})
    return Desk(store, settings, ask, findings=findings)

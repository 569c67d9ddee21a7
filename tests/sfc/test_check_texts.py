"""Faults of recipes are texts: a person reads them in their language, too."""

from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net


def test_faults_of_a_recipe_are_stated_in_german() -> None:
    data = {
        "steps": [{"name": "A"}, {"name": "A", "lok": 1}],
        "transitions": [{"source": "A", "target": "B", "condition": "true", "priority": "x"}],
    }
    rejected = compile_recipe(data)
    assert isinstance(rejected, RejectedRecipe)
    assert [text.in_language("de") for text in rejected.texts] == [
        "steps[1] (A): unbekannter Schlüssel 'lok'; ist lock gemeint?",
        "transitions[0] (A → B): 'priority' muss eine ganze Zahl sein",
        "der Name 'A' bezeichnet 2 Schritte oder Verzweigungen",
        "transitions[0] (A → B): unbekanntes Ziel 'B', kein Schritt und keine Verzweigung hat diesen Namen",
        "genau ein Schritt muss der Anfangsschritt sein, nicht keiner",
    ]


def test_warnings_of_a_recipe_are_stated_in_french() -> None:
    steps = [{"name": "A", "initial": True}, {"name": "B"}]
    ways = [{"source": "A", "target": "B", "condition": "true"}, {"source": "B", "target": "A", "condition": "A.T > 5"}]
    net = compile_recipe({"steps": steps, "transitions": ways})
    assert isinstance(net, Net), net
    (warning,) = net.warning_texts
    assert warning.in_language("fr").startswith("pas d'étape terminale")

"""Recipes: checked, edited, tested, released."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "recipes",
    sections="edge.features.recipes.settings:SECTIONS",
    work_master_record="edge.features.recipes.revisions:plan_revisions",
    page="edge.features.recipes.page:PAGE",
    open="edge.features.recipes.service:open_recipes",
    commands={
        "recipes": Noun("edge.features.recipes.cli.commands", "Check recipes, and what else engineers do with them.")
    },
    subcommands={"check": {"recipe": "edge.features.recipes.cli.check:recipe"}},
)

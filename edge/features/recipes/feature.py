"""Recipes: checked, edited, tested, released."""

from edge.app.feature import DocumentKind, Feature, Noun

FEATURE = Feature(
    "recipes",
    keys="edge.features.recipes.keys",
    sections="edge.features.recipes.settings:SECTIONS",
    schemas={"recipe-tests": "edge.features.recipes.recipe_tests:recipe_tests_schema"},
    settings_kinds={"recipetest": "edge.features.recipes.recipe_tests:RECIPE_TEST_SETTING"},
    documents={"recipetest": DocumentKind("recipe-tests", "edge.features.recipes.keys:recipe_tests")},
    recipe_examination="edge.features.recipes.examiner:faults_and_warnings",
    work_master_record="edge.features.recipes.revisions:plan_revisions",
    page="edge.features.recipes.page:PAGE",
    open="edge.features.recipes.service:open_recipes",
    commands={
        "recipes": Noun(
            "edge.features.recipes.cli.commands", "Check, compare, test and release recipes; show revisions, roll back."
        )
    },
    subcommands={"check": {"recipe": "edge.features.recipes.cli.check:recipe"}},
)

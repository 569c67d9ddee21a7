"""`edge recipes`: what engineers do with recipes."""

from copy import copy

import click

from edge.cli.files import draw
from edge.cli.terminal.command_group import CommandGroup
from edge.features.recipes.cli.check import recipe
from edge.features.recipes.cli.diff import diff
from edge.features.recipes.cli.plcopen import export, import_recipe
from edge.features.recipes.cli.replay import replay
from edge.features.recipes.cli.revisions import confirm, drafts, history, list_, release, rollback, show
from edge.features.recipes.cli.test import test


@click.group(cls=CommandGroup)
def recipes() -> None:
    """Check, compare, test and release recipes; show revisions, roll back."""


check = copy(recipe)
check.epilog = "Example: edge recipes check rear-axle.json"
recipes.add_command(check, "check")
drawn = copy(draw)
drawn.epilog = "Example: edge recipes draw rear-axle.json -o rear-axle.svg"
recipes.add_command(drawn, "draw")
recipes.add_command(diff)
for command in (list_, show, history, release, rollback, confirm, drafts, test, replay):
    recipes.add_command(command)
recipes.add_command(export)
recipes.add_command(import_recipe)

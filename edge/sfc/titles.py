"""Names the parts of a chart for people: their own titles, or their names as words.

Titles are for reading only: programs, conditions and histories use the names.
"""

from collections.abc import Sequence

from edge.model.localized_text import title_of, words_of
from edge.model.recipe import Action, Step
from edge.sfc.net import Net, NetTransition


def step_of(net: Net, name: str) -> Step:
    """Return a step as its author wrote it. Raises KeyError for an unknown one."""
    return net.recipe.steps[net.steps[name].index]


def action_of(net: Net, name: str, step: str) -> Action | None:
    """Return an action as its author wrote it: in a step, else where it has a title; None for an unknown one."""
    here = [action.index for action in net.steps[step].actions if action.name == name] if step in net.steps else []
    every = [action.index for action in (*net.starting.get(name, ()), *net.resetting.get(name, ()))]
    written = [net.recipe.actions[index] for index in (*here, *every)]
    return next((action for action in written if action.title), written[0] if written else None)


def step_title(net: Net, name: str, languages: Sequence[str]) -> str:
    """Return the title of a step in the languages of a reader."""
    return title_of(name, step_of(net, name).title, languages) if name in net.steps else words_of(name)


def action_title(net: Net, name: str, step: str, languages: Sequence[str]) -> str:
    """Return the title of an action of a step in the languages of a reader."""
    action = action_of(net, name, step)
    return title_of(name, action.title, languages) if action else words_of(name)


def transition_title(net: Net, transition: NetTransition, languages: Sequence[str]) -> str:
    """Return the title of a transition in the languages of a reader; empty for one without."""
    written = net.recipe.transitions
    title = written[transition.written].title if 0 <= transition.written < len(written) else None
    return title_of("", title, languages)

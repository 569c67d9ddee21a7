"""What people decided with which a job is not OK: the choices that made its verdict, and skipped actions."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from edge.features.archive.titles import NO_TITLES, Titles
from edge.foundation.text import ENGLISH, labels
from edge.model.localized_text import choose_text
from edge.model.offered_choices import CHOICE, chosen_value, offered_choices
from edge.sfc.net import Net
from edge.sfc.run import Association, Run
from edge.sfc.verdict import OK, skipped_by, verdict_of


class DecidingChoice(Struct, frozen=True, array_like=True):
    """What a person chose at an action, and who that was; the title is as its recipe has it, by language.

    A title that is empty says that the action was skipped; `by` then has the reason, too.
    """

    action: str
    title: str | dict[str, str]
    by: str

    def text(self, language: str = ENGLISH, titles: Titles = NO_TITLES) -> str:
        """Return the choice as a reason of a job, without the person: the same choices are counted together."""
        title = choose_text(self.title, (language,)) if self.title else labels(language)["action.skipped"]
        return f"{titles.action(self.action, language)}: {title}"

    def remark(self, language: str = ENGLISH, titles: Titles = NO_TITLES) -> str:
        """Return the choice with the person."""
        return f"{self.text(language, titles)} ({self.by})"


def deciding_choices(net: Net, run: Run) -> tuple[DecidingChoice, ...]:
    """Return the choices with which a job is not OK, in the order of the recipe.

    With another choice of the same prompt the verdict would be OK. Where that holds for none, as in a verdict that asks
    for the way that a run took, it is the last one.
    """
    choices = list(_choices(net, run))
    decisive = [choice for choice, association in choices if _would_be_ok(net, run, association)]
    last = max(choices, key=lambda found: found[1].ended_at or 0, default=None)
    return tuple(decisive or ([last[0]] if last else ()))


def skipped_actions(run: Run) -> tuple[DecidingChoice, ...]:
    """Return the actions that a person skipped, with the person and the reason."""
    latest = run.associations.values()
    return tuple(
        DecidingChoice(association.action, "", who) for association in latest if (who := skipped_by(association))
    )


def _choices(net: Net, run: Run) -> Iterator[tuple[DecidingChoice, Association]]:
    for key in sorted(run.associations, key=lambda key: net.actions[key.latest].index):
        association = run.associations[key]
        chosen = chosen_value(association.result)
        offered = offered_choices(net.actions[key.latest].parameters)
        if chosen and association.resolved_by and chosen in offered:
            yield DecidingChoice(association.action, offered[chosen], association.resolved_by), association


def _would_be_ok(net: Net, run: Run, association: Association) -> bool:
    """Return whether another choice of a prompt would have made the verdict OK."""
    (key,) = (key for key, other in run.associations.items() if other is association)
    chosen = chosen_value(association.result)
    for other in offered_choices(net.actions[key.latest].parameters).keys() - {chosen}:
        changed = replace(association, result={**association.result, CHOICE: other})
        variables = run.variables | ({CHOICE: other} if run.variables.get(CHOICE) == chosen else {})
        instead = replace(run, associations={**run.associations, key: changed}, variables=variables)
        if verdict_of(net, instead, run.ended_at or 0) == OK:
            return True
    return False

"""Which samples and occurrences the rules use; the others need not be recorded."""

from collections.abc import Iterable
from typing import Final

from edge.features.telemetry.model.rule import EntersRule, ExpressionRule, OccursRule, Rule, Span
from edge.features.telemetry.rules.evaluator import ready_rule, takes
from edge.ports.sample_lines import Line, Sample
from edge.ports.sample_value import JOB_ENDED, JOB_STARTED
from edge.ports.tag import matches, matches_any

_MAX_CACHED: Final = 10_000


def _needs_jobs(rule: Rule) -> bool:
    has_jobs = rule.while_ == "job.running" or rule.once or rule.action != "none" or isinstance(rule, EntersRule)
    return bool(has_jobs) or (not isinstance(rule, ExpressionRule | OccursRule) and rule.subject == "job")


class RuleInterest:
    """Answers by name whether a rule uses a line; `record_all` takes every line."""

    def __init__(self, rules: Iterable[Rule], *, record_all: bool = False) -> None:
        self.used_tags: frozenset[str] = frozenset()
        """Tags that other features read or write; their samples are recorded too."""
        self._published: tuple[str, ...] = ()
        self._record_all = record_all
        self.use_rules(rules)

    def publish(self, patterns: tuple[str, ...]) -> None:
        """Include the samples of tags that are published to other systems."""
        self._published = patterns
        self._known.clear()

    def use_rules(self, rules: Iterable[Rule]) -> None:
        """Answer for other rules from now on."""
        self._ready = [ready_rule(rule) for rule in rules]
        self._patterns = [item.rule.pattern for item in self._ready if isinstance(item.rule, OccursRule)]
        for element in self._ready:
            if isinstance(element.rule.while_, Span):
                self._patterns += [element.rule.while_.after, element.rule.while_.until]
        if any(_needs_jobs(item.rule) for item in self._ready):
            self._patterns += [JOB_STARTED, JOB_ENDED]
        self._known: dict[str, bool] = {}
        self._of_rules: dict[str, bool] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no line is recorded."""
        return not (self._record_all or self._ready or self.used_tags or self._published)

    def raises_alarms(self, tag: str) -> bool:
        """Return whether a rule evaluates the samples of a tag."""
        known = self._of_rules.get(tag)
        if known is None:
            known = any(takes(rule, tag) for rule in self._ready)
            if len(self._of_rules) < _MAX_CACHED:
                self._of_rules[tag] = known
        return known

    def wants(self, line: Line) -> bool:
        """Return whether a line is recorded."""
        if self._record_all:
            return True
        if not isinstance(line, Sample):
            return any(matches(pattern, line.name) for pattern in self._patterns)
        if line.tag in self.used_tags:
            return True
        known = self._known.get(line.tag)
        if known is None:
            known = self.raises_alarms(line.tag) or matches_any(self._published, line.tag)
            if len(self._known) < _MAX_CACHED:
                self._known[line.tag] = known
        return known

"""Rules as settings, the MES and files write them: one model per kind, and their JSON Schema."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

RuleText: TypeAlias = Annotated[str, Meta(min_length=1)]
Severity: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
NelsonRule: TypeAlias = Annotated[int, Meta(ge=1, le=8)]

ALL_NELSON_RULES: Final = (1, 2, 3, 4, 5, 6, 7, 8)


class _RuleBase(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    rename={"while_": "while"},
):
    """The members that every rule has. `severity` is required, except where each limit has its own.

    `message`, `action`, `latch` and `confirm` describe the alarm of a finding: its text, the action at the job, whether
    it stays active until its reset, and whether it must be confirmed.
    """

    id: RuleText
    severity: Severity | None = None
    while_: Literal["job.running"] | None = None
    once: Literal["job"] | None = None
    cooldown_seconds: NotNegative = 0
    bypass_cooldown: bool = False
    message: RuleText | dict[str, str] | None = None
    action: Literal["none", "pause", "abort"] = "none"
    latch: bool = False
    confirm: bool = False


class _TagRule(_RuleBase, frozen=True, kw_only=True):
    """A rule over samples of a tag; with `*` in the tag, each matching tag is a subject of its own.

    With `subject` "process" each joining process of a tag is one, named `tag[process]`.
    """

    tag: RuleText
    subject: Literal["tag", "process"] = "tag"


class LimitLevel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One limit; without a severity it has that of the rule."""

    at: float
    severity: Severity | None = None


class AlarmLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limits of a quantity; at least one is there."""

    high_high: LimitLevel | None = None
    high: LimitLevel | None = None
    low: LimitLevel | None = None
    low_low: LimitLevel | None = None


class LimitRule(_TagRule, frozen=True, kw_only=True, tag="limit"):
    """Detects a value outside limits, with hysteresis and delays."""

    limits: AlarmLimits
    hysteresis: NotNegative = 0
    on_delay_seconds: NotNegative = 0
    off_delay_seconds: NotNegative = 0


class BaselineRule(_TagRule, frozen=True, kw_only=True, tag="baseline"):
    """Detects a deviation from the mean of the tag's own recent samples."""

    window_seconds: NotNegative = 300
    sigma: NotNegative = 3
    min_samples: Count = 20


class Capability(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds of the machine capability Cm and Cmk of each `of` samples in a row, for a tolerance."""

    lower: float
    upper: float
    cm: NotNegative | None = None
    cmk: NotNegative | None = None
    of: Annotated[int, Meta(ge=2, le=10_000)] = 50


class ControlChartRule(_TagRule, frozen=True, kw_only=True, tag="control_chart"):
    """Detects the patterns of Nelson (1984) in individual values, or in means and ranges of subgroups.

    Mean and sigma are those of individual values; they are given or learned. `capability` bounds Cm and Cmk.
    """

    nelson: tuple[NelsonRule, ...] = ALL_NELSON_RULES
    mean: float | None = None
    sigma: NotNegative | None = None
    learn: Annotated[int, Meta(ge=2)] | None = None
    subgroup: Annotated[int, Meta(ge=2, le=10)] | None = None
    capability: Capability | None = None


class RateRule(_TagRule, frozen=True, kw_only=True, tag="rate"):
    """Detects a change that is too fast."""

    per_second: NotNegative


class StaleRule(_TagRule, frozen=True, kw_only=True, tag="stale"):
    """Detects missing good samples."""

    seconds: NotNegative


class ShareRule(_TagRule, frozen=True, kw_only=True, tag="share"):
    """Detects that at least `bad` of the last `of` results are not OK."""

    bad: Annotated[int, Meta(ge=1)]
    of: Annotated[int, Meta(ge=1)]


class EntersRule(_TagRule, frozen=True, kw_only=True, tag="enters"):
    """Detects a value that the subject has for the first time in a job."""


class OccursRule(_RuleBase, frozen=True, kw_only=True, tag="occurs"):
    """Detects an occurrence whose name matches a pattern."""

    pattern: RuleText
    tag: RuleText | None = None


class ExpressionRule(_RuleBase, frozen=True, kw_only=True, tag="expression"):
    """Detects that a condition over tags is true."""

    when: RuleText
    tag: RuleText | None = None


Rule: TypeAlias = (
    LimitRule
    | BaselineRule
    | ControlChartRule
    | RateRule
    | StaleRule
    | ShareRule
    | EntersRule
    | OccursRule
    | ExpressionRule
)

RULE_KINDS: Final[dict[str, type[Rule]]] = {
    "limit": LimitRule,
    "baseline": BaselineRule,
    "control_chart": ControlChartRule,
    "rate": RateRule,
    "stale": StaleRule,
    "share": ShareRule,
    "enters": EntersRule,
    "occurs": OccursRule,
    "expression": ExpressionRule,
}


def rules_schema() -> dict[str, Any]:
    """Return the JSON Schema of a list of rules."""
    schema = msgspec.json.schema(tuple[Rule, ...])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rules", **schema}

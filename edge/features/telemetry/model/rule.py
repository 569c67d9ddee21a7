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


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time from an occurrence to another one, such as from a carrier's entry into the station to its exit."""

    after: Annotated[RuleText, Meta(description="Name of the occurrence that begins it, with `*` for any characters.")]
    until: Annotated[RuleText, Meta(description="Name of the occurrence that ends it, with `*` for any characters.")]


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

    id: Annotated[RuleText, Meta(description="Name of the rule; no two rules have the same.")]
    severity: Annotated[
        Severity | None,
        Meta(description="1 to 1000 (OPC 10000-9). Required, except for `limit`, where each limit may have its own."),
    ] = None
    while_: Annotated[
        Literal["job.running"] | Span | None,
        Meta(
            description='`"job.running"`: samples and occurrences count only from the first `job.started` to the last '
            '`job.ended`. `{"after": "carriers.entered", "until": "carriers.left"}`: only from one occurrence to '
            "another. At the end an active finding is cleared, delays are dropped and levels are left; windows, "
            "learned values and previous samples are kept for the next time."
        ),
    ] = None
    once: Annotated[
        Literal["job"] | None,
        Meta(description='`"job"`: raised at most once per subject and job. Without effect outside of a job.'),
    ] = None
    cooldown_seconds: Annotated[
        NotNegative,
        Meta(
            description="After a raise, no new raise for this subject until it ends; a condition that still holds then "
            "is raised at that instant. Findings of `enters` and `occurs` in it are dropped. Escalation, easing and "
            "clearing are not delayed."
        ),
    ] = 0
    bypass_cooldown: Annotated[bool, Meta(description="The cooldown is not observed.")] = False
    message: Annotated[
        RuleText | dict[str, str] | None,
        Meta(
            description='Text of the alarm, or an object with a text for each language: `{"en": "{subject} has {value} '
            '°C", "de": "…"}`. Placeholders: `{rule}`, `{subject}`, `{name}` (the text that `*` in the tag matches), '
            "`{severity}`, `{value}`, `{job}`, `{at}`; of an occurrence `{data.<member>}`; of a result "
            "`{data.process}`, `{data.action}`, `{data.carrier}`. Without it kind and value."
        ),
    ] = None
    action: Annotated[
        Literal["none", "pause", "abort"],
        Meta(
            description='What the station does with the job of the finding when it is raised or escalated: `"abort"` '
            'as the method Abort, `"pause"` as Pause, with the sub-state Held instead of Suspended.'
        ),
    ] = "none"
    latch: Annotated[
        bool, Meta(description="The alarm stays active after its condition has ended, until a person resets it.")
    ] = False
    confirm: Annotated[bool, Meta(description="The alarm waits for Confirm after Acknowledge.")] = False


class _TagRule(_RuleBase, frozen=True, kw_only=True):
    """A rule over samples of a tag; with `*` in the tag, each matching tag is a subject of its own.

    With `subject` "process", "job" or "carrier" each of them is one, named `tag[J1]`; with "tool" the part of the tag
    before its first dot.
    """

    tag: Annotated[
        RuleText,
        Meta(
            description="Name of a tag; `*` matches any characters, dots included, and each matching tag is a subject "
            "of its own."
        ),
    ]
    subject: Annotated[
        Literal["tag", "process", "job", "carrier", "tool"],
        Meta(description="What has a state and an alarm of its own: see [Subjects](#subjects)."),
    ] = "tag"


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
    """Detects a value outside limits, with hysteresis and delays.

    Example: {"id": "oven-hot", "kind": "limit", "tag": "sensors.oven", "limits": {"high": {"at": 80, "severity": 500}},
     "hysteresis": 5, "message": {"en": "{subject} has {value} °C"}}
    """

    limits: Annotated[
        AlarmLimits,
        Meta(
            description='Any of `high_high`, `high`, `low`, `low_low`, each `{"at": number, "severity": number}`. The '
            "order low_low ≤ low < high ≤ high_high holds."
        ),
    ]
    hysteresis: Annotated[
        NotNegative,
        Meta(
            description="A level is reached when the value is above (low: below) `at`, and left when it is at or below "
            "`at` − hysteresis (low: at or above `at` + hysteresis). A sample between keeps the side of the sample "
            "before it."
        ),
    ] = 0
    on_delay_seconds: Annotated[
        NotNegative,
        Meta(
            description="Time from the first sample in a level until the level is active, also without another sample. "
            "A sample on the other side restarts it."
        ),
    ] = 0
    off_delay_seconds: Annotated[NotNegative, Meta(description="The same, until the level is no longer active.")] = 0


class BaselineRule(_TagRule, frozen=True, kw_only=True, tag="baseline"):
    """Detects a deviation from the mean of the tag's own recent samples."""

    window_seconds: Annotated[
        NotNegative,
        Meta(
            description="Samples younger than this and before the sample are its window; deviating samples too. At "
            "most 100,000 samples are kept."
        ),
    ] = 300
    sigma: Annotated[NotNegative, Meta(description="Standard deviations.")] = 3
    min_samples: Annotated[
        Count,
        Meta(
            description="With fewer samples in the window, or a standard deviation of 0, nothing is evaluated and the "
            "finding stays as it is."
        ),
    ] = 20


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

    nelson: Annotated[tuple[NelsonRule, ...], Meta(description="Tests to apply.")] = ALL_NELSON_RULES
    mean: Annotated[float | None, Meta(description="Mean of the process; without it, it is learned.")] = None
    sigma: Annotated[
        NotNegative | None,
        Meta(description="Standard deviation of the process; without it, it is learned. With 0 nothing is evaluated."),
    ] = None
    learn: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(
            description="Without `mean` and `sigma`: number of first samples that make the mean, and sigma = mean "
            "moving range / 1.128. They belong to no pattern. With `subgroup` it counts subgroups, and sigma = mean "
            "range / d2."
        ),
    ] = None
    subgroup: Annotated[
        Annotated[int, Meta(ge=2, le=10)] | None,
        Meta(
            description="So many consecutive samples are one point, their mean. Its deviation is sigma / √n; test 1 "
            "also finds a range outside of D3 and D4. `mean` and `sigma` are those of individual values."
        ),
    ] = None
    capability: Annotated[
        Capability | None,
        Meta(
            description='`{"lower": 8, "upper": 20, "cm": 1.67, "cmk": 1.67, "of": 50}`: raised when Cm or Cmk of the '
            "last complete `of` samples (50) is below its bound (either may be missing), cleared by the next complete "
            "ones. With `nelson` `[]` nothing else is tested, and no mean is needed."
        ),
    ] = None


class RateRule(_TagRule, frozen=True, kw_only=True, tag="rate"):
    """Detects a change that is too fast."""

    per_second: Annotated[NotNegative, Meta(description="Largest change per second.")]


class StaleRule(_TagRule, frozen=True, kw_only=True, tag="stale"):
    """Detects missing good samples."""

    seconds: Annotated[NotNegative, Meta(description="The time.")]


class ShareRule(_TagRule, frozen=True, kw_only=True, tag="share"):
    """Detects that at least `bad` of the last `of` results are not OK."""

    bad: Annotated[int, Meta(ge=1, description="Raised when at least so many are bad.")]
    of: Annotated[int, Meta(ge=1, description="Number of last results; fewer at the beginning.")]


class EntersRule(_TagRule, frozen=True, kw_only=True, tag="enters"):
    """Detects a value that the subject has for the first time in a job."""


class OccursRule(_RuleBase, frozen=True, kw_only=True, tag="occurs"):
    """Detects an occurrence whose name matches a pattern."""

    pattern: Annotated[RuleText, Meta(description="Name of the occurrence, with `*` for any characters.")]
    tag: Annotated[RuleText | None, Meta(description="Not used.")] = None
    subject: Annotated[
        Literal["job", "carrier", "tool"],
        Meta(description="What has an alarm of its own: see [Subjects](#subjects)."),
    ] = "job"


class ExpressionRule(_RuleBase, frozen=True, kw_only=True, tag="expression"):
    """Detects that a condition over tags is true."""

    when: Annotated[
        RuleText,
        Meta(
            description="An [expression](expressions.md) over the last good values of tags, by their names. While it "
            "is unknown, the finding stays as it is."
        ),
    ]
    tag: Annotated[RuleText | None, Meta(description="Not used.")] = None


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

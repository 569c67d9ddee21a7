"""`template`: a text with values of the inputs."""

import re
from collections.abc import Iterable

import msgspec

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.nodes.names import evaluate, syntax_faults, value_of

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class TemplateConfig(NodeConfig, frozen=True):
    """The text; an expression over the inputs stands in braces, like `Mean {mean} bar`."""

    text: str


def _faults(config: TemplateConfig, predecessors: Iterable[str]) -> Iterable[str]:
    names = frozenset(predecessors)
    for placeholder in _PLACEHOLDER.findall(config.text):
        yield from syntax_faults(value_of, placeholder, names)


def _run(config: TemplateConfig, attempt: Attempt) -> Output:
    names = frozenset(attempt.inputs)

    def fill(placeholder: re.Match[str]) -> str:
        value = evaluate(value_of(placeholder[1], names), attempt)
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return Output(_PLACEHOLDER.sub(fill, config.text))


KIND = NodeKind(
    "template", "A text with values of the inputs.", TemplateConfig, Inputs.ANY, Compute(_run), faults=_faults
)

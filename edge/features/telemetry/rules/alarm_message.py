"""The message of an alarm: a text in one or several languages with placeholders such as `{value}`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

PLACEHOLDERS: Final = ("rule", "subject", "name", "severity", "value", "job", "at")
DATA: Final = "data."
"""Begins the placeholder of a member of the data of an occurrence."""
DEFAULT_LANGUAGE: Final = "en"
MAX_VALUE_LENGTH: Final = 200
"""Characters of a value in a message; the rest is cut off."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def render_message(message: str | Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each language with its placeholders replaced; a fact that is missing leaves a dash."""
    texts = {DEFAULT_LANGUAGE: message} if isinstance(message, str) else message

    def fact(found: re.Match[str]) -> str:
        name = found[1]
        data = facts.get("data")
        if name.startswith(DATA):
            value = data.get(name.removeprefix(DATA)) if isinstance(data, Mapping) else None
        else:
            value = facts.get(name)
        return "–" if value is None else _shown(value)

    return {language: _PLACEHOLDER.sub(fact, text) for language, text in texts.items()}


def faults_of_message(message: str | Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of a message: no text, or placeholders that do not exist."""
    texts = {DEFAULT_LANGUAGE: message} if isinstance(message, str) else message
    if not texts or not all(texts.values()):
        yield "member 'message': a text is missing"
    for language, text in texts.items():
        for name in _PLACEHOLDER.findall(text):
            is_data = name.startswith(DATA) and name.removeprefix(DATA).isidentifier()
            if name not in PLACEHOLDERS and not is_data:
                known = ", ".join((*PLACEHOLDERS, f"{DATA}<member>"))
                yield f"member 'message': unknown placeholder '{name}' in language '{language}'; write one of {known}"


def _shown(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"

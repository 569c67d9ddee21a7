"""Localises messages: replaces each placeholder `{$Name}` by the text of that name in a language of the reader."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MaintenanceMessage": "Maintenance is in progress: no work is started.",
        "de:MaintenanceMessage": "Wartung: es wird keine Arbeit begonnen.",
        "fr:MaintenanceMessage": "Maintenance en cours : aucun travail n’est démarré.",
        "es:MaintenanceMessage": "Mantenimiento en curso: no se inicia ningún trabajo.",
        "ru:MaintenanceMessage": "Идёт техническое обслуживание: работа не начинается.",
        "UpgradeMessage": "The software of the gateway is being upgraded: no work is started.",
        "de:UpgradeMessage": "Die Software des Gateways wird erneuert: es wird keine Arbeit begonnen.",
        "fr:UpgradeMessage": "Le logiciel de la passerelle est mis à niveau : aucun travail n’est démarré.",
    }
)
"""The texts of the product, by `[lang:]Name`; those of a site replace them."""

DEFAULT_LANGUAGE: Final = "en"
"""The language of built-in texts without a language."""

NAME: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
KEY: Final = re.compile(rf"(?:[a-z]{{2,3}}(?:-[A-Za-z0-9]{{1,8}})*:)?{NAME}")
"""What a localised text may be called: `[lang:]Name`, the language as in BCP 47."""

_PLACEHOLDER = re.compile(rf"\{{\$({NAME})\}}")
_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(?:-[a-zA-Z0-9]{1,8})*")
_MOST_LANGUAGES = 10
_DEEPEST = 4
"""Levels of placeholders within texts: a text that names itself must end."""


def localize(message: str, texts: Mapping[str, str], languages: Sequence[str]) -> str:
    """Return a message in the first of some languages that has its texts; the name of a text that is missing."""
    order = tuple(_with_parents(languages))
    return _resolve(message, texts, order, _DEEPEST)


def parse_languages(header: str) -> tuple[str, ...]:
    """Parse the value of an Accept-Language (RFC 9110, 12.5.4); unreadable parts are left out."""
    weighed = []
    for position, part in enumerate(header.split(",")[:_MOST_LANGUAGES]):
        name, _, parameter = part.strip().partition(";")
        weight = _weight(parameter)
        if _LANGUAGE.fullmatch(name.strip()) and weight > 0:
            weighed.append((-weight, position, name.strip()))
    return tuple(name for _, _, name in sorted(weighed))


def language_of_locale(locale: str) -> tuple[str, ...]:
    """Return the language of a POSIX locale such as `de_AT.UTF-8`; none for C and POSIX."""
    name = re.split(r"[.@]", locale, maxsplit=1)[0].replace("_", "-")
    return (name,) if _LANGUAGE.fullmatch(name) else ()


def known_languages(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the languages in which there are texts, the default first."""
    found = {name.partition(":")[0] for name in (*BUILT_IN, *texts) if ":" in name}
    return (DEFAULT_LANGUAGE, *sorted(found - {DEFAULT_LANGUAGE}))


def _resolve(message: str, texts: Mapping[str, str], languages: Sequence[str], depth: int) -> str:
    def text_of(found: re.Match[str]) -> str:
        text = _find(found[1], texts, languages)
        if text is None or not depth:
            return found[1]
        return _resolve(text, texts, languages, depth - 1)

    return _PLACEHOLDER.sub(text_of, message)


def _find(name: str, texts: Mapping[str, str], languages: Sequence[str]) -> str | None:
    for language in languages:
        for table in (texts, BUILT_IN):
            if (text := table.get(f"{language}:{name}")) is not None:
                return text
        if language == DEFAULT_LANGUAGE and name in BUILT_IN and name not in texts:
            return BUILT_IN[name]
    return texts.get(name, BUILT_IN.get(name))


def _with_parents(languages: Iterable[str]) -> Iterable[str]:
    """Yield each language, then the more general ones: `de-AT`, `de`."""
    for language in languages:
        parts = language.split("-")
        yield language
        for length in range(len(parts) - 1, 0, -1):
            yield "-".join((parts[0].lower(), *parts[1:length]))


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0

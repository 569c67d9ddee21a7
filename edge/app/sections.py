"""Every section of the settings file: those of the core, and those that features declare."""

import pkgutil
from collections.abc import Mapping

from msgspec.structs import replace

from edge.app.features import equipment_settings, features
from edge.config import SECTIONS, Section


def declared_sections() -> Mapping[str, Section]:
    """Return each section by its name, in the order of reports and pages, for `load_settings`."""
    sections = dict(SECTIONS) | {"southbound": replace(SECTIONS["southbound"], kinds=equipment_settings())}
    names = list(sections)
    for feature in features():
        added: Mapping[str, Section] = pkgutil.resolve_name(feature.sections) if feature.sections else {}
        for name, section in added.items():
            names.insert(names.index(section.after) + 1 if section.after in names else len(names), name)
        sections |= added
    return {name: sections[name] for name in names}

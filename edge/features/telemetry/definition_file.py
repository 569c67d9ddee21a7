"""Reads the file of the site with definitions of tags."""

from pathlib import Path

from edge.foundation.errors import Refused, SettingsError
from edge.model.json_text import read_json_text
from edge.ports.tag_definitions import TagDefinitions, parse_definitions


def read_definitions(file: str) -> TagDefinitions:
    """Return the definitions of a file; an empty name stands for none. Raises SettingsError with all their faults."""
    if not file:
        return TagDefinitions()
    try:
        definitions, faults = parse_definitions(read_json_text(Path(file).read_bytes()))
    except OSError as error:
        definitions, faults = (), (f"cannot be read: {error.strerror}",)
    except Refused as refused:
        definitions, faults = (), (refused.message,)
    if faults:
        problems = [f"telemetry.tags: {file}: {fault}" for fault in faults]
        raise SettingsError(problems, "Correct them all; the JSON Schema is schemas/tags.schema.json.")
    return TagDefinitions(definitions)

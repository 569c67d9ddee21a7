"""The joining process that the parameters of an action name (OPC 40450-1)."""

from collections.abc import Mapping
from typing import Any, Final

_PARAMETERS: Final = ("joining_process_id", "selection_name")


def joining_process_of(parameters: Mapping[str, Any]) -> str | None:
    """Return the joining process that parameters name; None when they name none."""
    return next((str(parameters[name]) for name in _PARAMETERS if parameters.get(name)), None)

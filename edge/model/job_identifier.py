"""Names what a job works on: its physical asset, such as the VIN of a vehicle, or a parameter that is its number."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from edge.model.isa95 import JobOrder
from edge.model.json_value import plain_value

_NAMES: Final = ("vin", "serialnumber", "serial", "serialno")
"""Parameters that name what is worked on, without regard to their case and separators."""


def job_identifier(assets: Iterable[str], parameters: Mapping[str, Any]) -> str:
    """Return the first physical asset, else the VIN or serial number among the parameters; empty without one."""
    values = {name.casefold().replace("_", "").replace("-", ""): value for name, value in parameters.items()}
    numbers = (str(values[name]) for name in _NAMES if values.get(name) not in (None, ""))
    return next((asset for asset in assets if asset), next(numbers, ""))


def identifier_of(order: JobOrder) -> str:
    """Return what an order is about; empty where it names neither an asset nor a number."""
    parameters = {parameter.id: plain_value(parameter.value) for parameter in order.job_order_parameters or ()}
    return job_identifier((asset.id for asset in order.physical_asset_requirements or ()), parameters)

"""Commands and results from the reports of the station, for devices whose messages are not on the broker."""

from collections.abc import Mapping
from typing import Any

import msgspec

from edge.features.simulator.observed_job import ObservedJob
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import JOB_RESPONSE_TYPE, PROGRESS_TYPE
from edge.model.isa95 import JobResponse, Parameter

# A result over OPC UA has many values; these are the most important ones.
_SHOWN = ("evaluation", "torque", "angle", "result_state", "content")


def apply_station_report(job: ObservedJob, event: CloudEvent, devices: Mapping[str, str], now: int) -> None:
    """Record the commands to `devices` (by `type_id`) from the progress of a job, the results from its response."""
    match event.type:
        case t if t == PROGRESS_TYPE and event.data["job_id"] == job.job_order_id:
            for command in event.data.get("commands", ()):
                if command["phase"] == "start" and command["type_id"] in devices:
                    job.note_command(command["action"], command["action"], devices[command["type_id"]], now)
        case t if t == JOB_RESPONSE_TYPE:
            response = msgspec.convert(event.data, JobResponse)
            if response.job_order_id == job.job_order_id and response.end_time is not None:
                for parameter in response.job_response_data or ():
                    action = job.actions.get(parameter.id)
                    if action is not None and action.type_id in devices:
                        job.note_answer(parameter.id, _shown(parameter), now)
        case _:
            pass


def _shown(parameter: Parameter) -> Any:
    if not parameter.subparameters:
        return parameter.value
    return {each.id: _measured(each) for each in parameter.subparameters if each.id in _SHOWN}


def _measured(parameter: Parameter) -> Any:
    unit = parameter.engineering_units and parameter.engineering_units.display_name
    return f"{parameter.value} {unit.text}" if unit else parameter.value

"""Reads which problems keep equipment from answering the open commands of a job."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from edge.access.working_instances import GatewayReport, load_reports
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import open_access
from edge.config import EquipmentSettings
from edge.station.safing_tries import problem_of
from edge.station.stored_job import StoredJob, load


class EquipmentProblem(Struct, frozen=True):
    """Why a piece of equipment, as a running gateway reports it, cannot answer."""

    equipment: str
    gateway: str
    reason: str


async def read_with_problems(settings_file: Path | None, job_id: str) -> tuple[StoredJob, list[EquipmentProblem]]:
    """Read a job and the problems of its equipment. Raises Refused, SettingsError and Unavailable."""
    async with open_access(settings_file) as at:
        stored = await load(at.store, job_id)
        waiting = _equipment_of(_open_type_ids(stored), at.settings.southbound)
        used = _equipment_of(stored.net.command_types if stored.net else (), at.settings.southbound)
        reports = await load_reports(at.store, at.settings.gateway.scopes) if used else {}
        return stored, list(problems(waiting, used, reports, _sent_since(stored)))


def problems(
    waiting: Collection[str], used: Collection[str], reports: Mapping[str, GatewayReport], since: int | None = None
) -> Iterator[EquipmentProblem]:
    """Yield the problems that running gateways report of the equipment that a job uses.

    Of equipment that it does not wait for, only that its tool may still be active. Of other equipment also why its last
    result did not count, when that came after the instant `since`.
    """
    for gateway, report in reports.items():
        if report.report and report.at_work:
            for health in report.report.equipment:
                reasons = [health.obstacle] if health.name in waiting else []
                if unsafe := problem_of(health.open_safing):
                    reasons = [*(reason for reason in reasons if unsafe not in reason), unsafe]
                if health.name in waiting and since is not None and (health.last_late_at or 0) >= since:
                    reasons.append(f"a result did not count: {health.last_late}")
                if health.name in used and any(reasons):
                    yield EquipmentProblem(health.name, gateway, "; ".join(filter(None, reasons)))


def problem_line(problem: EquipmentProblem) -> str:
    """Return a problem as a line for people."""
    return f"  {printable(f'equipment {problem.equipment} of gateway {problem.gateway}: {problem.reason}')}"


def problem_data(problem: EquipmentProblem) -> dict[str, str]:
    """Return a problem as data."""
    return {"name": problem.equipment, "gateway": problem.gateway, "problem": problem.reason}


def _open_type_ids(stored: StoredJob) -> frozenset[str]:
    if stored.net is None or stored.run is None:
        return frozenset()
    return frozenset(stored.net.actions[key.latest].type_id for key in stored.run.open)


def _sent_since(stored: StoredJob) -> int | None:
    """Return when the first of the commands was sent that wait for an answer; None where none was."""
    every = [stored.run.associations[key].sent_at for key in stored.run.open] if stored.run else []
    return min((number for number in every if number is not None), default=None)


def _equipment_of(type_ids: Collection[str], southbound: Mapping[str, EquipmentSettings]) -> frozenset[str]:
    return frozenset(
        name
        for name, equipment_settings in southbound.items()
        if not set(type_ids).isdisjoint(equipment_settings.type_ids)
    )

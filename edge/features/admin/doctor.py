"""Examines all dependencies of a gateway concurrently; a failed examination is itself a finding."""

import asyncio
import os
import pkgutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from edge.app.advice import advise, examine_server, install_advice, store_advice
from edge.app.features import declared_sections, features
from edge.app.service_user import access_problems
from edge.config import OpcuaEquipmentSettings, Settings, load_settings, main_file
from edge.features.admin.board_check import STORE, examine_storage
from edge.features.admin.broker_check import brokers, examine_broker
from edge.features.admin.host_check import (
    examine_clock,
    examine_disks,
    examine_memory,
    examine_metrics,
    examine_versions,
)
from edge.features.admin.opcua_check import examine_certificates, examine_port, examine_trust, examine_users
from edge.features.admin.store_check import examine_store
from edge.foundation.errors import EdgeError, SettingsError
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.foundation.threads import daemon_future
from edge.links.mqtt_broker import address_of
from edge.model.finding import Examination, HealthFinding, failing, ok
from edge.store.bounds import CountLimits

EXAMINATION_TIMEOUT_S = 8.0
"""Time limit of one examination."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def examine(file: Path | None, environ: Mapping[str, str]) -> list[HealthFinding]:
    """Examine the gateway of these settings; with invalid settings only the machine."""
    asyncio.get_running_loop().set_default_executor(_DaemonExecutor())
    settings = None
    try:
        settings = await asyncio.to_thread(load_settings, file, environ, declared_sections())
    except SettingsError as error:
        findings = [failing("settings", problem, error.advice_text) for problem in error.problem_texts]
        examinations = list(_host_examinations(["/", STORE]))
    else:
        findings = []
        # The machine first: a full disk is why a store fails, a wrong clock why a certificate is refused.
        examinations = [*_host_examinations(["/", STORE, settings.opcua.pki]), *_gateway_examinations(settings)]
    main = main_file(file, environ).absolute()
    denied = await asyncio.to_thread(list, access_problems(main, settings))
    findings += [failing("settings", problem, "Correct it, then restart the gateway.") for problem in denied]
    findings = findings or [ok("settings", "can be used")]
    async with TaskGroup() as tasks:
        running = [
            tasks.create_task(findings_of(*examination), name=f"examine {examination[0]}")
            for examination in examinations
        ]
    return [*findings, *(finding for task in running for finding in task.result())]


def _gateway_examinations(settings: Settings) -> Iterator[Examination]:
    keep = settings.retention
    limits = CountLimits(settings.gateway.scopes, keep.marks, keep.undelivered_jobs)
    yield "store", advise(examine_store(settings.redis, limits=limits), store_advice(settings.redis.url))
    if Path(STORE).exists():
        yield "storage", examine_storage()
    for mqtt, listeners in brokers(settings):
        yield (
            Text.of("broker {at}", at=address_of(mqtt)),
            advise(examine_broker(mqtt, listeners), install_advice(mqtt.url, "mosquitto", ("mosquitto",))),
        )
    yield from equipment_examinations(settings)
    yield "OPC UA port", examine_port(settings.opcua)
    yield "certificates", examine_certificates(settings)
    if settings.opcua.endpoint:
        yield "OPC UA trust list", examine_trust(settings.opcua)
        yield "OPC UA users", examine_users(Path(settings.users_file), settings.opcua.anonymous)
    if settings.metrics.listen:
        yield "metrics", examine_metrics(settings.metrics.listen)
    yield from (feature for feature in _of_features(settings) if not _is_equipment(feature))


def equipment_examinations(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of the equipment that can be asked."""
    for name, section in settings.southbound.items():
        if isinstance(section, OpcuaEquipmentSettings):
            subject = Text.of("equipment {name}", name=name)
            yield subject, examine_server(subject, section.url, Text.of("Jobs wait for it."))
    yield from (feature for feature in _of_features(settings) if _is_equipment(feature))


def _of_features(settings: Settings) -> Iterator[Examination]:
    for feature in features():
        if feature.checks:
            yield from pkgutil.resolve_name(feature.checks)(settings)


def _is_equipment(examination: Examination) -> bool:
    return str(examination[0]).startswith("equipment ")


def _host_examinations(directories: list[str]) -> Iterator[Examination]:
    yield "versions", examine_versions()
    yield "disk", examine_disks(directories)
    yield "memory", examine_memory()
    yield "clock", examine_clock()


async def findings_of(
    subject: str | Text, examination: AsyncIterator[HealthFinding], within: float = EXAMINATION_TIMEOUT_S
) -> list[HealthFinding]:
    """Run one examination within a time limit; return its findings, errors included."""
    findings: list[HealthFinding] = []
    try:
        async with asyncio.timeout(within):
            async for finding in examination:
                findings.append(finding)  # noqa: PERF401 - what was found before an error counts
    except EdgeError as error:
        findings.append(failing(subject, error.text, error.advice_text))
    except TimeoutError:
        findings.append(
            failing(
                subject,
                Text.of("no answer within {seconds:g} s", seconds=within),
                "Check the load of the machine and its network.",
            )
        )
    except OSError as error:
        advice = "If access was denied, call it as root (sudo) or as the user of the service."
        findings.append(failing(subject, str(error), advice))
    except Exception as error:  # noqa: BLE001 - a defect of one examination must not hide the findings of the others
        findings.append(failing(subject, Text.of("cannot be examined: {reason}", reason=repr(error)), "Report this."))
    return findings


def main(arguments: Sequence[str]) -> None:
    """Write the findings with their texts to standard output, for the station page: `python -m … [SETTINGS]`."""
    file = Path(arguments[0]) if arguments else None
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(examine(file, os.environ))))


class _DaemonExecutor(ThreadPoolExecutor):
    """Runs each call in a daemon thread, so that a call without an end does not delay the exit."""

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Run a function in its own daemon thread."""
        return daemon_future(partial(fn, *args, **kwargs), f"examine {fn!r}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""`make chaos`: kills for minutes on end, takes each part away for a while, and says what came of it."""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from tests.chaos import device_campaign, flows, locks, telemetry
from tests.chaos.campaign import Parts, Seen, carry_out
from tests.chaos.check import faults
from tests.chaos.kills import EVERYTHING, Kills
from tests.chaos.outages import OUTAGES, Outage


def main() -> None:
    """Kill until it is enough or the time is over; exit with 1 when something was not as it has to be."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="[default: 1000]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most time to kill in [default: no limit]")
    parser.add_argument("--seed", type=int, default=1, help="[default: 1]")
    parser.add_argument("--aof", choices=("always", "everysec"), default="always", help="[default: always]")
    parser.add_argument("--outage", type=float, default=20.0, help="how long each part is away, 0: not [default: 20]")
    parser.add_argument("--gateways", type=int, default=1, help="gateways on one store [default: 1]")
    kinds = ("mqtt", "opcua", "openprotocol", "vision")
    parser.add_argument("--devices", choices=kinds, help="kill and disconnect one device")
    parser.add_argument("--jobs", type=int, default=200, help="with --devices: one disturbance each [default: 200]")
    parser.add_argument("--locks", action="store_true", help="with --devices: kill under jobs that share the device")
    parser.add_argument("--flows", action="store_true", help="kill the gateway under twenty flows")
    parser.add_argument("--store", action="store_true", help="with --flows: every other kill hits Redis")
    parser.add_argument("--telemetry", action="store_true", help="kill under 200 samples a second with rules")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if arguments.flows:
        sys.exit(_kill_under_flows(arguments.kills, arguments.seed, with_store=arguments.store))
    if arguments.telemetry:
        sys.exit(_kill_under_samples(arguments.kills, arguments.seed))
    if arguments.devices and arguments.locks:
        sys.exit(_kill_under_locks(arguments.devices, arguments.kills, arguments.seed))
    if arguments.devices:
        sys.exit(_disturb_device(arguments.devices, arguments.jobs, arguments.seed))
    name = f"kills, AOF {arguments.aof}, seed {arguments.seed}, gateways {arguments.gateways}"
    kills = Kills(arguments.kills, EVERYTHING, arguments.seconds, _print)
    faulty = _carry_out(name, kills, arguments)
    for part, how in OUTAGES if arguments.outage else ():
        outage = Outage(part, how, (arguments.outage,))
        faulty += _carry_out(f"{part} {how} for {arguments.outage:g} s", outage, arguments)
    sys.exit(bool(faulty))


def _disturb_device(kind: str, number: int, seed: int) -> bool:
    """Carry out the campaign of one kind of device; return whether there was a fault."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        figures = asyncio.run(device_campaign.carry_out(kind, number, Path(directory), seed, _print))
    for fault in figures.faults():
        _print(f"FAULT {fault}")
    _print(f"{kind}: {number} jobs in {figures.seconds:.0f} s, {len(figures.faults())} faults")
    _print(f"  disturbed: {dict(figures.disturbances)}")
    begun = f"begun by the device: {figures.started}, again as allowed: {figures.allowed}"
    _print(f"  outcomes: {figures.outcomes_by_name()}; {begun}")
    wall, processor = figures.slowest_start
    _print(f"  slowest start of the gateway: {wall:.1f} s, of the processor {processor:.1f} s")
    _print(f"  timed out: {figures.timeouts}")
    return bool(figures.faults())


def _kill_under_locks(kind: str, kills: int, seed: int) -> bool:
    """Carry out the campaign of locks; return whether there was a fault."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        figures = asyncio.run(locks.carry_out(kind, kills, Path(directory), seed, _print))
    for fault in figures.faults():
        _print(f"FAULT {fault}")
    _print(f"locks, {kind}: {figures.kills} kills in {figures.seconds:.0f} s, {len(figures.faults())} faults")
    _print(f"  {len(set(figures.order))} jobs, {len(figures.order)} works begun by the device")
    return bool(figures.faults())


def _kill_under_flows(kills: int, seed: int, *, with_store: bool) -> bool:
    """Carry out the campaign of flows; return whether there was a fault."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        figures = flows.carry_out(kills, Path(directory), seed, _print, with_store=with_store)
    found = list(figures.faults())
    for fault in found:
        _print(f"FAULT {fault}")
    _print(f"flows: {figures.kills} kills in {figures.seconds:.0f} s, {len(found)} faults")
    _print(f"  cycles: {dict(Counter(figures.cycles.values()))}")
    _print(f"  actions: {dict(Counter(action.get('status') for action in figures.actions.values()))}")
    return bool(found)


def _kill_under_samples(kills: int, seed: int) -> bool:
    """Carry out the campaign of telemetry; return whether there was a fault."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        figures = telemetry.carry_out(kills, Path(directory), seed, _print)
    found = list(figures.faults())
    for fault in found:
        _print(f"FAULT {fault}")
    _print(f"telemetry: {figures.kills.total()} kills in {figures.seconds:.0f} s, {len(found)} faults")
    _print(f"  kills: {dict(figures.kills)}; {figures.sent} samples sent, {figures.samples} in the stream")
    findings = Counter(kind for kinds in figures.found.values() for kind in kinds)
    _print(f"  findings: {dict(findings)}; {figures.published} events at the MES, {len(figures.unpublished)} missing")
    return bool(found)


def _carry_out(name: str, disturb: Callable[[Parts], Awaitable[None]], arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        plan = {"seed": arguments.seed, "appendfsync": arguments.aof, "gateways": arguments.gateways}
        seen = asyncio.run(carry_out(disturb, Path(directory), **plan))
    found = faults(seen)
    for text in found:
        _print(f"FAULT {text}")
    _report(name, seen, len(found))
    return len(found)


def _report(name: str, seen: Seen, found: int) -> None:
    controller, mes = seen.controller, seen.mes
    _print(f"{name}: {found} faults in {seen.seconds:.0f} s")
    if seen.kills:
        _print(f"  {seen.kills.total()} kills: {', '.join(f'{what} {n}' for what, n in sorted(seen.kills.items()))}")
    _print(
        f"  {len(mes.answers)} jobs accepted, {len(mes.answers) - len(seen.stuck)} ended; {mes.repeated} calls repeated"
    )
    phases = ", ".join(f"{phase} {count}" for phase, count in sorted(controller.repeated.items()))
    total = controller.repeated.total()
    _print(f"  {len(controller.received)} commands, {total} times one came again under its id ({phases})")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""`make chaos`: kills for minutes on end, and says what came of it."""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from tests.chaos.campaign import EVERYTHING, EVERYTHING_BUT_REDIS, Plan, carry_out
from tests.chaos.check import faults


def main() -> None:
    """Kill until it is enough or the time is over; exit with 1 when something was not as it has to be."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most time to kill in")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aof", choices=("always", "everysec"), default="always")
    arguments = parser.parse_args()
    # With everysec Redis itself promises no more than the last seconds' loss: it is left alive then.
    targets = EVERYTHING if arguments.aof == "always" else EVERYTHING_BUT_REDIS
    plan = Plan(
        kills=arguments.kills,
        seed=arguments.seed,
        targets=targets,
        seconds=arguments.seconds,
        appendfsync=arguments.aof,
        tell=_say,
    )
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        seen = asyncio.run(carry_out(plan, Path(directory)))
    found = faults(seen)
    for each in found:
        _say(f"FAULT {each}")
    controller, mes = seen.controller, seen.mes
    _say(f"{seen.kills.total()} kills in {seen.seconds:.0f} s, AOF {plan.appendfsync}, seed {plan.seed}")
    _say("  " + ", ".join(f"{target} {count}" for target, count in sorted(seen.kills.items())))
    _say(
        f"  {len(mes.answers)} jobs accepted, {len(mes.answers) - len(seen.stuck)} ended; {mes.repeated} calls repeated"
    )
    _say(f"  {len(controller.received)} commands, {controller.repeated} of them came again under their id")
    _say(f"  {len(found)} faults")
    sys.exit(bool(found))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""`make chaos SENTINEL=1`: faults of a line with two gateways on a store behind Sentinel."""

import argparse
import functools
import random
import sys
import tempfile
from pathlib import Path

from tests.outside.servers import build_clock_shim
from tests.sentinel.campaign import Campaign, Round
from tests.sentinel.faults import BY_NAME, sequence
from tests.sentinel.line import PROGRAMS
from tests.sentinel.plant import open_plant
from tests.sentinel.report import line_of, table


def main() -> None:
    """Inject faults, print the table, and exit with 1 when something was not as it has to be."""
    parser = argparse.ArgumentParser(prog="make chaos SENTINEL=1", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="[default: 100]")
    parser.add_argument("--seed", type=int, default=1, help="[default: 1]")
    parser.add_argument("--nodes", type=int, default=3, help="data nodes [default: 3]")
    parser.add_argument("--program", choices=PROGRAMS, default="redis", help="[default: redis]")
    parser.add_argument("--only", action="append", choices=BY_NAME, default=[], help="this fault; may be repeated")
    parser.add_argument("--replicated", action="store_true", help='with durability = "replicated"')
    parser.add_argument("--min-replicas", type=int, default=0, help="min-replicas-to-write, lag 2 s [default: 0]")
    parser.add_argument("--directory", type=Path, help="keep logs and data here")
    arguments = parser.parse_args()
    further = f"min-replicas-to-write {arguments.min_replicas}\nmin-replicas-max-lag 2\n"
    redis = 'durability = "replicated"\n' if arguments.replicated else ""
    faults = sequence(arguments.faults, arguments.nodes, random.Random(arguments.seed), tuple(arguments.only))

    def report(outcome: Round) -> None:
        _print(line_of(outcome))

    with tempfile.TemporaryDirectory(prefix="sentinel-") as temporary:
        directory = arguments.directory or Path(temporary)
        directory.mkdir(exist_ok=True)
        shim = build_clock_shim(directory)
        plant_of = functools.partial(open_plant, nodes=arguments.nodes, program=arguments.program, redis=redis)
        with plant_of(directory, shim, line_settings=further) as plant:
            campaign = Campaign(plant, report)
            campaign.run(faults)
    for line in table(campaign.rounds):
        _print(line)
    bad = sum(bool(outcome.faults(replicated=arguments.replicated)) for outcome in campaign.rounds)
    _print(f"{len(campaign.rounds)} faults injected, {bad} not as they have to be")
    sys.exit(bool(bad))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

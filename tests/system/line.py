"""The page *Two machines and a witness*: its steps, and the machines on which they are run."""

import asyncio
import os
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.system.machine import Machine

SUITE = os.environ.get("SUITE", "trixie")
PAGE = (Path(__file__).parents[2] / "docs/how-to/two-machines-and-a-witness.md").read_text(encoding="utf-8")
STORE = {"bookworm": "redis", "trixie": "valkey"}[SUITE]
ADDRESSES = ("10.4.0.11", "10.4.0.12", "10.4.0.13")
"""Those of the page, in the order of the machines."""
STEPS = re.findall(r"^## (?:\d+\. )?(.*): (.*)$", PAGE, re.MULTILINE)
"""Title of each step, and on which machines it is done."""
ASK_SENTINEL = (
    ". /etc/line/names; export REDISCLI_AUTH=$(cat /etc/line/sentinel.password); "
    "$STORE-cli --tls --cacert /etc/line/ca.pem -h $HERE -p 26379 sentinel"
)


@dataclass
class Line:
    """The machines of the page."""

    machines: list[Machine]

    def at(self, where: str) -> list[Machine]:
        """Return the machines that a heading names."""
        first, second, witness = self.machines
        return {
            "first machine": [first],
            "both gateways": [first, second],
            "witness": [witness],
            "every machine": self.machines,
        }[where]

    def commands(self, heading: str, here: Machine) -> str:
        """Return the commands of a section, with the addresses of this network."""
        section = PAGE.partition(f"{heading}\n")[2].partition("\n## ")[0]
        text = "set -e\n" + "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
        text = text.replace("HERE=10.4.0.11", f"HERE={here.address}").replace("STORE=valkey", f"STORE={STORE}")
        for address, machine in zip(ADDRESSES, self.machines, strict=True):
            text = text.replace(address, machine.address)
        return text

    async def primary(self) -> Machine:
        """Return the machine whose store the witness names."""
        printed = await self.machines[2].run(f"{ASK_SENTINEL} get-master-addr-by-name line")
        return next(machine for machine in self.machines[:2] if f"{machine.address}\n" in f"{printed}\n")

    async def roles(self) -> list[str]:
        """Return what the stores of the gateways say that they are."""
        ask = (
            ". /etc/line/names; export REDISCLI_AUTH=$(cat /etc/line/store.password); "
            "$STORE-cli --tls --cacert /etc/line/ca.pem -h $HERE role | head -n 1"
        )
        return [(await machine.call(ask))[1] for machine in self.machines[:2]]


def copy_secrets(line: Line) -> None:
    """Do what `scp` does on the page: certificate of the authority, passwords, and the own key of each machine."""
    source = line.machines[0].root / "etc/line"
    for machine in line.machines[1:]:
        target = machine.root / "etc/line"
        own = [source / f"{machine.address}.{suffix}" for suffix in ("pem", "key")]
        for file in (source / "ca.pem", *source.glob("*.password"), *own):
            shutil.copy(file, target)


async def until(condition: Callable[[], Awaitable[object]], what: str, deadline: float = 90.0) -> float:
    """Wait for a condition; return the seconds that it took."""
    start = time.monotonic()
    while not await condition():
        assert time.monotonic() < start + deadline, f"not in time: {what}"
        await asyncio.sleep(0.1)
    return time.monotonic() - start

"""A gateway computer for tests: a Debian that boots in a container, with a network cable to us and nothing else."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_NAME = f"edge-{os.getpid()}"
_NETWORK = f"169.254.{os.getpid() % 254 + 1}"
"""Link-local (RFC 3927); two runs at a time share neither name nor network."""
_OUR_ADDRESS = f"{_NETWORK}.1/24"

_BOOT_WITHIN_S = 180.0
_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
}
# They wait for hardware, networks or mirrors that are not there.
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "systemd-networkd-wait-online.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
    "systemd-udevd.service",
)


class Machine:
    """One computer: it can be booted, cut off from power, and controlled by commands as root."""

    def __init__(self, root: Path, shared: Path, place: "Place | None" = None) -> None:
        self.root = root
        number = place.number if place else 0
        self.address = f"{_NETWORK}.{number + 2}"
        self._name = f"{_NAME}-{number}" if place else _NAME
        self._bridge = place.switch.name if place else ""
        self._console = root.with_name("console.log")
        self._shared = shared
        self._container: Process | None = None
        self._init = 0

    @classmethod
    def unpack(cls, archive: Path, directory: Path, shared: Path, place: "Place | None" = None) -> "Machine":
        """Make a machine of an archived root; it finds the directory `shared` at /shared, to read only."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        subprocess.run(["tar", "--extract", f"--directory={directory}", f"--file={archive}"], check=True)
        for name in ("etc/machine-id", "etc/resolv.conf"):
            (directory / name).unlink(missing_ok=True)
            (directory / name).touch()
        host = place.name if place else "gateway"
        (directory / "etc/hostname").write_text(f"{host}\n")
        (directory / "etc/hosts").write_text(f"127.0.0.1 localhost {host}\n")
        for unit in _MASKED:
            (directory / "etc/systemd/system" / unit).symlink_to("/dev/null")
        return cls(directory, shared, place)

    async def boot(self, *options: str) -> None:
        """Switch it on and wait until it has booted; `options` are more of systemd-nspawn's."""
        with self._console.open("ab") as console:
            self._container = await asyncio.create_subprocess_exec(
                *("systemd-nspawn", "--quiet", f"--directory={self.root}", f"--machine={self._name}", "--boot"),
                # Neither a systemd around us nor a terminal is needed.
                *("--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off"),
                # As on a computer of its own, every user may read whether the clock is kept.
                "--system-call-filter=adjtimex clock_adjtime",
                *("--link-journal=no", f"--bind-ro={self._shared}:/shared", *options),
                f"--network-bridge={self._bridge}" if self._bridge else "--network-veth",
                # A tree of cgroup v2 of its own: systemd from 256 on boots on no other, whatever the host has.
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_LOG_LEVEL": "err"},
                stdin=DEVNULL,
                stdout=console,
                stderr=STDOUT,
            )
        deadline = time.monotonic() + _BOOT_WITHIN_S
        while not (children := _children(self._container.pid)) or not await self._is_up(children[0]):
            assert self._container.returncode is None, f"the container has ended: see {self._console}"
            assert time.monotonic() < deadline, "the machine did not boot in time"
            await asyncio.sleep(0.1)
        if not self._bridge:
            await _run("ip", "addr", "replace", _OUR_ADDRESS, "dev", f"ve-{self._name}")
            await _run("ip", "link", "set", f"ve-{self._name}", "up")
        await self.run(f"ip addr add {self.address}/24 dev host0 && ip link set host0 up")

    async def _is_up(self, init: int) -> bool:
        self._init = init
        _, state = await self.call("systemctl is-system-running")
        return state in {"running", "degraded"}

    async def run(self, command: str) -> str:
        """Run a shell command as root and return its output. It must succeed."""
        status, printed = await self.call(command)
        assert status == 0, f"{command}: {status}\n{printed}"
        return printed

    async def call(self, command: str) -> tuple[int, str]:
        """Run a shell command as root; return its exit status and output."""
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")
        process = await asyncio.create_subprocess_exec(
            *("nsenter", f"--target={self._init}", *namespaces, "--"),
            # Without these, no command in the container sets the clock of the machine around it.
            *("setpriv", "--bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot", "--", "sh", "-c", command),
            env=_ENVIRONMENT,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
        )
        printed, _ = await process.communicate()
        return process.returncode or 0, printed.decode(errors="replace").strip()

    async def cut_power(self) -> None:
        """Take everything in it away at once, as a power cut does."""
        await self._end(signal.SIGKILL)

    async def power_off(self) -> None:
        """Shut it down."""
        await self._end(signal.SIGRTMIN + 4)

    async def _end(self, number: int) -> None:
        if self._container and self._container.returncode is None:
            os.kill(self._init, number)
            async with asyncio.timeout(90):
                await self._container.wait()

    def remove(self) -> None:
        """Throw it away."""
        shutil.rmtree(self.root)


class Switch:
    """A network between several machines and us."""

    name = f"br-{os.getpid()}"

    async def __aenter__(self) -> Self:
        await _run("ip", "link", "add", self.name, "type", "bridge")
        await _run("ip", "addr", "add", _OUR_ADDRESS, "dev", self.name)
        await _run("ip", "link", "set", self.name, "up")
        return self

    async def __aexit__(self, *_: object) -> None:
        await _run("ip", "link", "del", self.name)


@dataclass(frozen=True)
class Place:
    """Port of a switch, and the host name of the machine there."""

    switch: Switch
    number: int
    name: str


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    printed, _ = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {printed.decode()}"

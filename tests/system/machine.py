"""A gateway computer for tests: a Debian that boots in a container, with a network cable to us and nothing else."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from pathlib import Path

_NAME = f"edge-{os.getpid()}"
_NETWORK = f"169.254.{os.getpid() % 254 + 1}"
"""Link-local (RFC 3927); two runs at a time share neither name nor network."""

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

    def __init__(self, root: Path, shared: Path) -> None:
        self.root = root
        self.address = f"{_NETWORK}.2"
        self._console = root.with_name("console.log")
        self._shared = shared
        self._container: Process | None = None
        self._init = 0

    @classmethod
    def unpack(cls, archive: Path, directory: Path, shared: Path) -> "Machine":
        """Make a machine of an archived root; it finds the directory `shared` at /shared, to read only."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        subprocess.run(["tar", "--extract", f"--directory={directory}", f"--file={archive}"], check=True)
        for name in ("etc/machine-id", "etc/resolv.conf"):
            (directory / name).unlink(missing_ok=True)
            (directory / name).touch()
        (directory / "etc/hostname").write_text("gateway\n")
        (directory / "etc/hosts").write_text("127.0.0.1 localhost gateway\n")
        for unit in _MASKED:
            (directory / "etc/systemd/system" / unit).symlink_to("/dev/null")
        return cls(directory, shared)

    async def boot(self, *options: str) -> None:
        """Switch it on and wait until it has booted; `options` are more of systemd-nspawn's."""
        with self._console.open("ab") as console:
            self._container = await asyncio.create_subprocess_exec(
                *("systemd-nspawn", "--quiet", f"--directory={self.root}", f"--machine={_NAME}", "--boot"),
                # Neither a systemd around us nor a terminal is needed.
                *("--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off"),
                # As on a computer of its own, everybody may read whether the clock is kept.
                "--system-call-filter=adjtimex clock_adjtime",
                *("--link-journal=no", "--network-veth", f"--bind-ro={self._shared}:/shared", *options),
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
        await _run("ip", "addr", "replace", f"{_NETWORK}.1/30", "dev", f"ve-{_NAME}")
        await _run("ip", "link", "set", f"ve-{_NAME}", "up")
        await self.run(f"ip addr add {self.address}/30 dev host0 && ip link set host0 up")

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


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    printed, _ = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {printed.decode()}"

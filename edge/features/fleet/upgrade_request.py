"""Passes signed commands `upgrade` on to root, and follows the upgrade across the restart of the gateway."""

import asyncio
from pathlib import Path

import msgspec

from edge.features.fleet.messages import FleetState
from edge.features.fleet.upgrade_record import FOLDER, SOCKET, UpgradeReply, is_running, load
from edge.foundation.errors import Refused, Unavailable

_ANSWER_WITHIN_S = 120.0
_LOOK_EVERY_S = 1.0
_ADVICE = "Permit upgrades: systemctl enable --now microdcs-edge-upgrade.socket"


async def request_upgrade(id: str, text: str, socket: Path = SOCKET, folder: Path = FOLDER) -> str:
    """Request a signed upgrade from the unit of root; return its output. Raises Refused and Unavailable."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            reply = await _ask(text, socket)
    except TimeoutError as error:
        raise Unavailable(f"{socket} did not answer within {_ANSWER_WITHIN_S:.0f} s") from error
    except OSError as error:
        problem = f"this gateway is not upgraded by commands: {socket}: {error.strerror}. {_ADVICE}"
        raise Refused("upgrade", problem, _ADVICE) from error
    if reply.state is not FleetState.EXECUTING:
        raise Refused("upgrade", reply.reason)
    return await follow_upgrade(id, folder)


async def follow_upgrade(id: str, folder: Path = FOLDER, look_every_s: float = _LOOK_EVERY_S) -> str:
    """Wait for the end of an upgrade; return its output. Raises Refused when it failed or was interrupted."""
    while True:
        # Asked before the record is read: the record of an upgrade that has ended is complete.
        runs = await asyncio.to_thread(is_running, folder)
        found = await asyncio.to_thread(load, folder, id)
        match found.state if found else None:
            case FleetState.SUCCESSFUL:
                return found.output if found else ""
            case FleetState.FAILED:
                raise Refused("upgrade", found.reason if found else "")
            case _ if not runs:
                problem = "the upgrade was interrupted; look at it: journalctl -u 'microdcs-edge-upgrade@*'"
                raise Refused("upgrade", problem, "Then: sudo dpkg --configure -a")
            case _:
                await asyncio.sleep(look_every_s)


async def _ask(text: str, socket: Path) -> UpgradeReply:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    try:
        writer.write(text.encode() + b"\n")
        writer.write_eof()
        return msgspec.json.decode(await reader.readline(), type=UpgradeReply)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable("the unit microdcs-edge-upgrade@ did not answer; its journal has the reason") from error
    finally:
        writer.close()

"""`edge fleet keys`: the keys of administrators and of components."""

import asyncio
import sys
from pathlib import Path

import click
import msgspec

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import CommandOutput, StoreAccess, store_action, store_command
from edge.features.fleet.settings import FleetSettings
from edge.features.fleet.signature import PublicKey
from edge.features.fleet.signing_keys import (
    SHORTEST_PASSWORD,
    SUFFIX,
    new_key,
    read_folder,
    read_public,
    usable,
    write_private,
    write_public,
)
from edge.features.fleet.store import load_keys, put_key
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.foundation.text import Text


@click.group(cls=CommandGroup)
def keys() -> None:
    """Manage the keys that sign commands, and those that this component accepts."""


@keys.command(epilog="Example: edge fleet keys create anna anna.pem")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--password-stdin", is_flag=True, help="Read the password of the file from standard input.")
def create(name: str, file: Path, *, password_stdin: bool) -> None:
    """Create a key of an administrator: an encrypted file, and its public key as .jwk file of the same name.

    Keep FILE on the administrator's computer only. Bring the .jwk file to the components: `edge fleet keys add`.
    """
    if file.exists():
        raise Refused(
            "key", Text.of("{file} exists", file=file), "Choose another file: a lost key cannot be made again."
        )
    password = read_password(from_stdin=password_stdin, confirm=True)
    if len(password) < SHORTEST_PASSWORD:
        raise Refused(
            "key",
            Text.of("the password has less than {shortest_password} characters", shortest_password=SHORTEST_PASSWORD),
            "Choose a longer one.",
        )
    private, public = new_key(name)
    write_private(file, private, password)
    write_atomically(file.with_suffix(SUFFIX), msgspec.json.encode(public) + b"\n", 0o644)
    print_text(f"key {public.kid} of {name}: {file}, public {file.with_suffix(SUFFIX)}")


def _accepted_key(_context: click.Context, _argument: click.Parameter, file: Path) -> PublicKey:
    """Return the public key of a file. Raises Refused for another file, and for a revoked key."""
    key = read_public(file.read_bytes())
    if key.revoked:
        raise Refused(
            "key",
            Text.of("key {kid} of {key} is revoked", kid=key.kid, key=key.name),
            "Create a new key: edge fleet keys create",
        )
    return key


@keys.command(epilog="Example: edge fleet keys add anna.jwk")
@click.argument(
    "key", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True), callback=_accepted_key
)
@store_action
async def add(at: StoreAccess, key: PublicKey) -> str:
    """Accept commands that are signed by a key. FILE is its public key."""
    public_key = (await _load(at)).get(key.kid)
    if public_key is not None and public_key.revoked:
        problem = Text.of("key {kid} of {known} was revoked at this component", kid=key.kid, known=public_key.name)
        raise Refused("key", problem, "Create a new key: edge fleet keys create")
    await _write(at, "fleet keys add", key)
    return f"key {key.kid} of {key.name} is accepted"


@keys.command(epilog="Example: edge fleet keys revoke 3f86a0c4")
@click.argument("which", metavar="KID")
@store_action
async def revoke(at: StoreAccess, which: str) -> str:
    """Refuse commands of a key from now on. KID is the id of the key, or its beginning.

    The key stays in the list: its commands are answered with the reason and are in the audit trail.
    """
    meant = [key for key in (await _load(at)).values() if key.kid.startswith(which)]
    if len(meant) != 1:
        what = Text.of("more than one key") if meant else Text.of("no key")
        raise Refused(
            "key",
            Text.of("{what} has an id that begins with {which}", what=what, which=which),
            "List them with: edge fleet keys list",
        )
    revoked = msgspec.structs.replace(meant[0], revoked=True)
    await _write(at, "fleet keys revoke", revoked)
    return f"key {revoked.kid} of {revoked.name} is revoked"


@keys.command("list", epilog="Example: edge fleet keys list")
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the keys that this component accepts, and the revoked ones."""
    accepted = (await _load(at)).values()
    data = [{"kid": key.kid, "name": key.name, "revoked": key.revoked} for key in accepted]
    lines = [f"{key.kid}  {key.name}{'  revoked' if key.revoked else ''}" for key in accepted]
    return CommandOutput(data, "\n".join(lines) or "no keys: every command is refused")


def read_password(*, from_stdin: bool, confirm: bool = False) -> str:
    """Return the password of a key file from the prompt or standard input."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("password of the key", hide_input=True, confirmation_prompt=confirm))


async def _load(at: StoreAccess) -> dict[str, PublicKey]:
    fleet = at.settings.section(FleetSettings)
    if fleet.keys_from == "store":
        return usable(await load_keys(at.store))
    return await asyncio.to_thread(read_folder, Path(fleet.keys))


async def _write(at: StoreAccess, action: str, key: PublicKey) -> None:
    fleet = at.settings.section(FleetSettings)
    async with recorded(at, action, key.kid, key.name):
        if fleet.keys_from == "store":
            await at.store.commit(put_key(at.store.keys, key))
        else:
            await asyncio.to_thread(write_public, Path(fleet.keys), key)

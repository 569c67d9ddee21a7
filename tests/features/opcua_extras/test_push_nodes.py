"""The object ServerConfiguration: a client finds its groups, the state of the trust list, and what it may call."""

from pathlib import Path

import msgspec
from asyncua import ua

from tests.features.opcua_extras.test_push import push
from tests.uaserver.clients import Application, connected, make_settings, with_users
from tests.uaserver.running import MACHINES, served


async def test_client_finds_certificate_groups_and_permitted_methods(tmp_path: Path, friend: Application) -> None:
    settings = with_users(make_settings(tmp_path, trusted_users=str(tmp_path / "users-trusted")))
    settings = msgspec.structs.replace(settings, security_admins=("engineer",))
    friend.trusted_by(settings)
    async with served(settings, MACHINES[:1], parts=[push]) as server:
        for user in ("engineer", "operator"):
            async with connected(server.endpoint, friend, user=user) as client:
                groups = client.get_node(ua.ObjectIds.ServerConfiguration_CertificateGroups)
                names = [(await child.read_browse_name()).Name for child in await groups.get_children()]
                assert names == ["DefaultApplicationGroup", "DefaultUserTokenGroup"]
                place = ["0:DefaultApplicationGroup", "0:TrustList"]
                trust_list = await groups.get_child(place)
                assert await (await trust_list.get_child("0:Size")).read_value() > 500
                assert await (await trust_list.get_child("0:Writable")).read_value() is True
                assert await (await trust_list.get_child("0:OpenCount")).read_value() == 0
                method = await trust_list.get_child("0:CloseAndUpdate")
                executable = await method.read_attribute(ua.AttributeIds.UserExecutable)
                assert executable.Value.Value is (user == "engineer")
                (argument,) = await (await method.get_child("0:InputArguments")).read_value()
                assert argument.Name == "FileHandle"

"""A gateway's files and store, for the tests that save and restore them."""

import json
from pathlib import Path

from edge.access.users import User, write_user
from edge.config import OpcuaSettings, RedisSettings
from edge.model.user import Role
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate

CANARY = "canary/pass@word-77"
"""A password that needs quoting in URLs."""


def furnish(directory: Path, redis: RedisSettings, **opcua: str) -> Path:
    """Write settings, certificates, users and trust list into a directory; return the settings file."""
    pki, trusted, users = directory / "pki", directory / "trusted", directory / "users"
    (directory / "conf.d").mkdir(parents=True)
    sections = {
        "redis": {"url": redis.url, "prefix": redis.prefix},
        "mqtt": {"url": "", "password": CANARY},
        "opcua": OPCUA | {"pki": str(pki), "trusted": str(trusted), "users_file": str(users)} | opcua,
    }
    lines = []
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    file = directory / "edge.toml"
    file.write_text("\n".join(lines))
    (directory / "conf.d" / "site.toml").write_text('[opcua]\nmanufacturer = "Example"\n')
    certificates.renew(pki, "urn:test:edge", ["localhost"])
    add_certificate(certificates.renew(directory / "client", "urn:test:client", ["localhost"]).certificate, trusted)
    write_user(users, User("erika", Role.ENGINEER, f"$argon2id$v=19$m=1,t=1,p=1$salt${'c' * 20}"))
    return file


OPCUA = {"endpoint": OpcuaSettings().endpoint}

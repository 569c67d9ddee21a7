"""`edge opcua`: manages the certificate of the gateway and trusted applications."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import structs
from msgspec.structs import replace

from edge.access.password_hash import hash_password
from edge.access.user_changes import check_name
from edge.access.users import User, read_users, write_user
from edge.app.features import gateway_settings
from edge.cli.terminal.command_group import OpenGroup
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import CommandOutput, json_option, settings_option
from edge.cli.users import new_password, record_change
from edge.config import OpcuaSettings
from edge.config.hosts import is_host
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.certificate import CertificateState
from edge.model.user import Role
from edge.opcua.application_certificate import (
    CertificateFile,
    certificate_files,
    host_names,
    read_certificate,
    user_name,
)
from edge.uaserver import certificates
from edge.uaserver.application_trust import (
    add_certificate,
    find_certificates,
    issuers_directory,
    rejected_directory,
    rejected_users_directory,
    revocation_files,
)
from edge.uaserver.certificates import (
    OwnCertificate,
    UnusableCertificate,
    check_issued,
    load,
    load_certificate,
    public_certificate,
    read_subject,
    signing_request,
    thumbprint,
)
from edge.uaserver.namespaces import application_uri

_ADVICE = "List them with: edge opcua list"
_HOST_ADVICE = "Use the host of the address that clients connect to, without opc.tcp:// and port."
_ROLES = ("observer", "operator", "engineer")

_user_option = click.option("--user", "of_user", is_flag=True, help="The certificate of a user, not of an application.")


@click.group(cls=OpenGroup)
def opcua() -> None:
    """Manage certificates of the OPC UA server, and the applications and users that it trusts.

    All but `renew` and `install` takes effect at once: the server reads the files at each connection.
    """


@opcua.command("list", epilog="Example: edge opcua list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the certificate of the gateway, trusted and rejected certificates, and users."""
    settings, _ = _read(settings_file)
    trusted, rejected = _directories(settings)
    own = load_certificate(Path(settings.pki))
    _require_access(rejected)
    described: dict[str, Any] = {
        "own": own and structs.asdict(public_certificate(own, "own")) | {"hosts": host_names(own)},
        "trusted": [_describe(entry, "trusted") for entry in certificate_files(trusted)],
        "issuers": [_describe(entry, "issuer") for entry in certificate_files(issuers_directory(trusted))],
        "revocations": [
            _describe_revocations(path, found)
            for directory in (trusted, issuers_directory(trusted))
            for path, found in revocation_files(directory)
        ],
        "rejected": [_describe(entry, "rejected") for entry in certificate_files(rejected)],
        **_certificates_of_users(settings),
        "users": [
            {"name": user.name, "role": user.role.name.lower()}
            for user in read_users(Path(gateway_settings(settings_file).users_file)).values()
        ],
    }
    CommandOutput(described, "\n".join(_lines(described))).print(as_json=as_json)


@opcua.command(epilog="Example: edge opcua trust 3F86A0")
@click.argument("which", metavar="THUMBPRINT|FILE")
@_user_option
@settings_option
def trust(which: str, settings_file: Path | None, *, of_user: bool) -> None:
    """Trust an application, or with --user the certificate of a user.

    THUMBPRINT, or its beginning, is that of a rejected certificate; FILE is the certificate of an application, of a
    user, or of an authority that signs them. A user is named by the common name of the certificate.
    """
    settings, _ = _read(settings_file)
    trusted, rejected = _user_directories(settings) if of_user else _directories(settings)
    if (path := Path(which)).is_file():
        with _file_errors(path):
            certificate = read_certificate(path)
    else:
        certificate = _find_one(which, rejected)[0].certificate
    with _file_errors(trusted):
        laid = add_certificate(certificate, trusted)
        for entry in find_certificates([rejected], thumbprint(certificate)):
            entry.path.unlink()
    record_change(settings_file, "opcua trust", thumbprint(certificate), certificate.subject.rfc4514_string())
    print_text(f"trusted: {certificate.subject.rfc4514_string()} ({laid})")
    if of_user:
        print_text(_role_text(certificate, Path(gateway_settings(settings_file).users_file)))


@opcua.command(epilog="Example: edge opcua reject 3F86A0")
@click.argument("which", metavar="THUMBPRINT")
@_user_option
@settings_option
def reject(which: str, settings_file: Path | None, *, of_user: bool) -> None:
    """Reject a trusted application, or with --user the certificate of a user.

    THUMBPRINT, or its beginning, is that of a trusted certificate. Open channels of an application end when their keys
    have to be renewed, within one hour; restart the gateway to end them now. Sessions of a user end at once.
    """
    settings, _ = _read(settings_file)
    trusted, rejected = _user_directories(settings) if of_user else _directories(settings)
    files = _find_one(which, trusted)
    with _file_errors(trusted):
        add_certificate(files[0].certificate, rejected)
        for entry in files:
            entry.path.unlink()
    certificate = files[0].certificate
    subject = user_name(certificate) if of_user else thumbprint(certificate)
    comment = certificate.subject.rfc4514_string()
    record_change(settings_file, "opcua reject", subject, comment, ends_sessions=of_user)
    print_text(f"rejected: {certificate.subject.rfc4514_string()}")


@opcua.command(epilog="Example: edge opcua renew --host gateway.plant.example.com")
@click.option("--host", "hosts", multiple=True, help="A further host name or address; `[opcua] hosts` keeps it.")
@settings_option
def renew(hosts: tuple[str, ...], settings_file: Path | None) -> None:
    """Generate a new key and certificate.

    They take effect after a restart, and clients have to trust the new certificate.
    """
    settings, gateway = _read(settings_file)
    if wrong := [host for host in hosts if not is_host(host)]:
        raise Refused("host", Text.of("{wrong!r} is neither a host name nor an address", wrong=wrong[0]), _HOST_ADVICE)
    directory = Path(settings.pki)
    listening = certificates.listening_hosts(gateway_settings(settings_file))
    names = [*certificates.server_hosts(settings, *listening), *hosts]
    with _file_errors(directory):
        own = certificates.renew(directory, application_uri(gateway), dict.fromkeys(names))
    record_change(settings_file, "opcua renew", certificates.thumbprint(own.certificate))
    print_text(f"{directory / 'own.der'}: {certificates.thumbprint(own.certificate)}")
    print_text("restart the gateway, then trust this certificate in its clients")


@opcua.command(epilog="Example: edge opcua request --subject CN=gateway,O=plant > gateway.csr")
@click.option("--subject", default="", help="Name of the new certificate; without it that of the present one.")
@settings_option
def request(subject: str, settings_file: Path | None) -> None:
    """Print a signing request for the key of the gateway.

    An authority issues a certificate for it, which `edge opcua install` takes.
    """
    own = _own(_read(settings_file)[0])
    try:
        name = read_subject(subject)
    except (ValueError, KeyError) as error:
        raise Refused(
            "subject",
            Text.of("{subject!r} is not a name: {reason}", subject=subject, reason=error),
            "Write it as CN=gateway,O=plant.",
        ) from error
    made = x509.load_der_x509_csr(signing_request(own, own.key, name))
    print_text(made.public_bytes(Encoding.PEM).decode().rstrip())


@opcua.command(epilog="Example: edge opcua install gateway.pem --authority plant.pem")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--authority", "authorities", multiple=True, type=click.Path(path_type=Path), help="An authority above it."
)
@settings_option
def install(file: Path, authorities: tuple[Path, ...], settings_file: Path | None) -> None:
    """Install a certificate that an authority has issued for the key of the gateway.

    It takes effect after a restart, and the gateway sends the authorities with it.
    """
    settings, gateway = _read(settings_file)
    present = _own(settings)
    found = []
    for path in (file, *authorities):
        with _file_errors(path):
            found.append(read_certificate(path))
    try:
        own = check_issued(found[0], found[1:], [present.key], application_uri(gateway), datetime.now(UTC))
    except UnusableCertificate as error:
        raise Refused(
            "certificate",
            Text.of("{file}: {reason}", file=file, reason=error),
            "Print a request with: edge opcua request",
        ) from error
    with _file_errors(Path(settings.pki)):
        certificates.store(Path(settings.pki), own)
    record_change(settings_file, "opcua install", certificates.thumbprint(own.certificate))
    print_text(f"{Path(settings.pki) / 'own.der'}: {certificates.thumbprint(own.certificate)}")
    print_text("restart the gateway")


@opcua.command(epilog="Example: edge opcua password alice --role operator")
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="Role of the user.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@settings_option
def password(name: str, role: str, settings_file: Path | None, *, password_stdin: bool) -> None:
    """Add a user, or change the password and role of a user; `edge users` does more."""
    check_name(name)
    secret = new_password(name, from_stdin=password_stdin)
    users_file = Path(gateway_settings(settings_file).users_file)
    with _file_errors(users_file):
        user = read_users(users_file).get(name) or User(name, Role[role.upper()], "")
        write_user(users_file, replace(user, role=Role[role.upper()], password_hash=hash_password(secret)))
    is_other_role = user.role is not Role[role.upper()]
    record_change(settings_file, "opcua password", name, role, ends_sessions=is_other_role)
    print_text(f"{name} is {role}, in {users_file}")


def _read(settings_file: Path | None) -> tuple[OpcuaSettings, str]:
    settings = gateway_settings(settings_file)
    return settings.opcua, settings.gateway.name


def _own(settings: OpcuaSettings) -> OwnCertificate:
    """Return the certificate of the gateway with its key. Raises Refused before the first start."""
    with _file_errors(Path(settings.pki)):
        own = load(Path(settings.pki))
    if own is None:
        raise Refused("certificate", "the gateway has no certificate yet", "Start it once, or call: edge opcua renew")
    return own


def _directories(settings: OpcuaSettings) -> tuple[Path, Path]:
    return Path(settings.trusted), rejected_directory(Path(settings.pki))


def _user_directories(settings: OpcuaSettings) -> tuple[Path, Path]:
    """Return the directories of trusted and rejected users. Raises Refused while users have passwords only."""
    if not settings.trusted_users:
        problem = "[opcua] trusted_users is empty: users do not log in with certificates"
        raise Refused("settings", problem, 'Set it, such as trusted_users = "/etc/microdcs-edge/opcua-trusted-users".')
    return Path(settings.trusted_users), rejected_users_directory(Path(settings.pki))


def _certificates_of_users(settings: OpcuaSettings) -> dict[str, Any]:
    """Return the certificates of users for the list; nothing while users have passwords only."""
    if not settings.trusted_users:
        return {}
    trusted, rejected = _user_directories(settings)
    return {
        "trusted_users": [_describe_user(entry, "trusted") for entry in certificate_files(trusted)],
        "rejected_users": [_describe_user(entry, "rejected") for entry in certificate_files(rejected)],
    }


def _describe_user(entry: CertificateFile, state: CertificateState) -> dict[str, Any]:
    return _describe(entry, state) | {"user": user_name(entry.certificate)}


def _role_text(certificate: x509.Certificate, users_file: Path) -> str:
    """Return what a trusted certificate of a user permits."""
    name = user_name(certificate)
    with _file_errors(users_file):
        user = read_users(users_file).get(name)
    if user is not None:
        return f"{name} is {user.role.name.lower()}"
    return f"{name!r} is not a user yet, unless this is an authority: edge users add NAME --role ROLE"


def _find_one(which: str, directory: Path) -> Sequence[CertificateFile]:
    """Find the files of one certificate. Raises Refused when none or more than one matches."""
    _require_access(directory)
    files = find_certificates([directory], which)
    if len({entry.certificate for entry in files}) != 1:
        what = Text.of("more than one certificate") if files else Text.of("no certificate")
        raise Refused(
            "certificate",
            Text.of(
                "{what} in {directory} has a thumbprint that begins with {which}",
                what=what,
                directory=directory,
                which=which,
            ),
            _ADVICE,
        )
    return files


def _require_access(directory: Path) -> None:
    """Raise Refused when this user may not list a directory, which would look as if it were empty."""
    with _file_errors(directory), contextlib.suppress(FileNotFoundError):
        list(directory.iterdir())


def _describe(entry: CertificateFile, state: CertificateState) -> dict[str, Any]:
    certificate = structs.asdict(public_certificate(entry.certificate, state))
    return certificate | {"file": click.format_filename(entry.path)}


def _describe_revocations(path: Path, found: x509.CertificateRevocationList) -> dict[str, Any]:
    return {
        "authority": found.issuer.rfc4514_string(),
        "revoked": len(found),
        "until": found.next_update_utc.date().isoformat() if found.next_update_utc else "",
        "file": click.format_filename(path),
    }


def _lines(described: Mapping[str, Any]) -> Iterator[str]:
    own = described["own"]
    if own:
        yield f"own       {own['thumbprint']}  until {own['expires']}  {', '.join(own['applications'])}"
        yield f"          for {', '.join(own['hosts'])}"
    else:
        yield "own       none yet: the first start generates it"
    for revocation in described["revocations"]:
        yield f"revoked   {revocation['revoked']} by {revocation['authority']}  until {revocation['until']}"
    for kind in ("trusted", "issuers", "rejected", "trusted_users", "rejected_users"):
        for entry in described.get(kind, ()):
            title = kind.replace("_users", " user").replace("issuers", "issuer")
            yield f"{title:9} {entry['thumbprint']}  until {entry['expires']}  {entry['subject']}"
    for user in described["users"]:
        yield f"user      {user['name']}  {user['role']}"


@contextlib.contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Translate errors of reading and writing a file to Refused."""
    try:
        yield
    except OSError as error:
        raise Refused(
            "file",
            Text.of("{filename}: {reason}", filename=error.filename or path, reason=error.strerror),
            "Call it as root (sudo).",
        ) from error
    except ValueError as error:
        raise Refused(
            "file",
            Text.of("{path} is not a certificate: {reason}", path=path, reason=error),
            "Use a file in DER or PEM format.",
        ) from error

"""Names the operator who runs a command, for audit records."""

import os
import pwd


def operator_name() -> str:
    """Return the user who runs this command as the system knows it, not the environment; below sudo also its caller."""
    name = pwd.getpwuid(os.getuid()).pw_name
    caller = os.environ.get("SUDO_USER", "") if os.getuid() == 0 else ""
    return f"{caller} ({name})" if caller else name

"""Names the operator who runs a command, for audit records, and the languages of the operator."""

import os
import pwd

from edge.access.localization import language_of_locale


def operator_name() -> str:
    """Return the user who runs this command as the system knows it, not the environment; below sudo also its caller."""
    name = pwd.getpwuid(os.getuid()).pw_name
    caller = os.environ.get("SUDO_USER", "") if os.getuid() == 0 else ""
    return f"{caller} ({name})" if caller else name


def operator_languages() -> tuple[str, ...]:
    """Return the language of the operator, from the environment as gettext reads it."""
    # The first that is set decides.
    locale = next((found for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (found := os.environ.get(name))), "")
    return language_of_locale(locale)

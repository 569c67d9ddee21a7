"""People and their rights: users, logins, sessions, locks, the audit trail, modes and long operations."""

"""Examination, backup, restore, recordings, boards, upgrades."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "admin",
    open="edge.features.admin.operations:open_operations",
    page="edge.features.admin.page:PAGE",
    commands={
        "init": Noun("edge.features.admin.cli.init", "Write the settings of a site and try them."),
        "hw": Noun("edge.features.admin.cli.hw", "Detect and check the board, and write the files that it needs."),
        "doctor": Noun(
            "edge.features.admin.cli.doctor", "Examine a gateway and its dependencies, with advice for each fault."
        ),
        "backup": Noun(
            "edge.features.admin.cli.backup", "Save settings, certificates, users and jobs of a gateway in one file."
        ),
        "restore": Noun("edge.features.admin.cli.backup", "Restore a gateway from a backup."),
        "support-bundle": Noun(
            "edge.features.admin.cli.doctor", "Collect what support needs in one file, without secrets."
        ),
        "record": Noun(
            "edge.features.admin.cli.record", "Record the messages between the gateway and equipment, without secrets."
        ),
    },
)

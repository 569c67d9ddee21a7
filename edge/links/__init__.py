"""Sessions with other systems: each over one protocol, without knowledge of the content."""

"""Station files: Work Masters, resources, limits, rules and flows of a store as files, compared and applied."""

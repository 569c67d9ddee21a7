"""Station files: Work Masters, resources, limits and documents of features, compared with a store and applied."""

"""Values and ports with which features serve each other and the core."""

"""The words of the plant: data as it travels and is stored, and nothing that does anything."""

"""Rules as people write them."""

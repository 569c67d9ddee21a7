"""`edge jobs`: job orders and their runs."""

"""`edge alarms`: shows alarms and answers them."""

"""`edge equipment`: equipment as the gateways see it."""

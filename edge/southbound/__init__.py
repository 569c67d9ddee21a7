"""Equipment behind its protocol: one file per kind, each behind the port of `edge.station.equipment`."""

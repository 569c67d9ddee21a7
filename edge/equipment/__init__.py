"""Equipment kinds, independent of each other, behind the port of `edge.station.equipment`."""

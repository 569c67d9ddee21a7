"""Equipment behind its protocol: kinds that know none of the others, behind the port of `edge.station.equipment`."""

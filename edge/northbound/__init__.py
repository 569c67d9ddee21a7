"""Between the MES and the station: calls come in, retained state and events go out."""

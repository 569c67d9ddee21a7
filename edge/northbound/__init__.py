"""The interface to the MES: calls come in, retained state and events go out."""

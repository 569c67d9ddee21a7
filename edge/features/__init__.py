"""The features of a gateway: each is one folder."""

"""How the store differs from the station files, as the interfaces of a gateway show it."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field


class StationDrift(Struct):
    """The result of the last comparison of the store with the station files.

    `text` is None without station files, and empty without a difference; `counts` are the differences by their kind,
    `faults` are those of the files: if there are any, the store is not compared.
    """

    text: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    faults: int = 0

    def notes(self) -> Iterable[str]:
        """Yield what the status of the gateway adds."""
        if self.text:
            yield f"station differs from its files: {self.text}"

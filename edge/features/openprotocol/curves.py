"""Keeps the curves and plots of the newest results of an Open Protocol controller until these are answered."""

from collections.abc import Mapping, Sequence

from edge.equipment.result_ledger import limit_memory
from edge.features.openprotocol.conversion import Curves, TighteningResult
from edge.features.openprotocol.protocol.trace import CurveMessage
from edge.foundation.listeners import ChangeSignal

_RESULTS = 200
"""The most results whose curves are kept."""


class ResultCurves:
    """The curves and the parameters of plots by the numbers of their results, beyond one connection."""

    def __init__(self) -> None:
        self._changed = ChangeSignal()
        self._curves: dict[int, list[CurveMessage]] = {}
        self._plots: dict[int, Mapping[str, str]] = {}

    def handle_curve(self, curve: CurveMessage) -> None:
        """Keep a curve until its result is answered."""
        self._curves.setdefault(curve.result, []).append(curve)
        limit_memory(self._curves, _RESULTS)
        self._changed.set()

    def handle_plot(self, number: int, parameters: Mapping[str, str]) -> None:
        """Keep the parameters of the plot of a result until it is answered."""
        self._plots[number] = parameters
        limit_memory(self._plots, _RESULTS)

    def with_plots(self, results: Sequence[TighteningResult]) -> Sequence[TighteningResult]:
        """Return these results, each with the parameters of its plot where they came."""
        plots = self._plots
        return [
            {**result, "plot": plot} if (plot := plots.pop(result["result"] or 0, None)) else result
            for result in results
        ]

    async def curves_of(self, results: Sequence[TighteningResult], kinds: int, seconds: float) -> Curves:
        """Return the curves of these results; wait at most `seconds` until each has `kinds` of them."""
        numbers = [result["result"] or 0 for result in results]
        curves = self._curves
        if kinds:
            await self._changed.wait_until(
                lambda: all(len(curves.get(number, ())) >= kinds for number in numbers), seconds
            )
        return {number: tuple(curves.pop(number)) for number in numbers if number in curves}

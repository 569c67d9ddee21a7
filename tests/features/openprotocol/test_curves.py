"""Curves and plots are kept until their result is answered."""

from edge.features.openprotocol.curves import ResultCurves
from edge.features.openprotocol.protocol.trace import CurveMessage


def curve(result: int) -> CurveMessage:
    return CurveMessage(result=result, time=None, kind=2, unit="N·m", values=(1.0,), interval_ms=None)


async def test_curves_and_plots_are_returned_once_with_their_result() -> None:
    curves = ResultCurves()
    curves.handle_curve(curve(7))
    curves.handle_plot(7, {"02006": "90.00"})
    results = [{"result": 7}, {"result": 8}]
    assert (await curves.curves_of(results, 1, 0.0)) == {7: (curve(7),)}
    assert curves.with_plots(results) == [{"result": 7, "plot": {"02006": "90.00"}}, {"result": 8}]
    assert (await curves.curves_of(results, 0, 0.0), curves.with_plots(results)) == ({}, results)


async def test_curves_of_the_oldest_results_are_dropped() -> None:
    curves = ResultCurves()
    for number in range(1, 300):
        curves.handle_curve(curve(number))
    assert set(await curves.curves_of([{"result": 1}, {"result": 299}], 0, 0.0)) == {299}

"""Lines become samples and occurrences; invalid lines are reported and skipped."""

import math

import pytest

from edge.ports.sample_lines import LineError, Occurrence, Quality, Sample, parse_line, read_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"at": 5, "tag": "t", "value": 1.5}', Sample(5, "t", 1.5)),
        ('{"at": 5, "tag": "t", "value": null, "quality": "bad"}', Sample(5, "t", None, Quality.BAD)),
        ('{"at": -1, "tag": "", "value": {"a": [1]}, "more": 1}', Sample(-1, "", {"a": [1]})),
        ('{"at": 7, "occurrence": "job.started", "job": "J1"}', Occurrence(7, "job.started", "J1", None)),
        ('{"at": 7, "occurrence": "x", "data": {"n": 1}}', Occurrence(7, "x", None, {"n": 1})),
    ],
)
def test_line_of_either_form_is_parsed(text: str, expected: object) -> None:
    assert parse_line(text) == expected


def test_nan_and_infinity_are_parsed_as_values() -> None:
    nan, infinity = (parse_line(f'{{"at": 0, "tag": "t", "value": {word}}}') for word in ("NaN", "-Infinity"))
    assert isinstance(nan, Sample)
    assert math.isnan(nan.value)
    assert infinity == Sample(0, "t", -math.inf)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "JSON object"),
        ('{"tag": "t", "value": 1}', "milliseconds"),
        ('{"at": true, "tag": "t", "value": 1}', "milliseconds"),
        ('{"at": 1.5, "tag": "t", "value": 1}', "milliseconds"),
        ('{"at": 1, "tag": "t"}', "occurrence"),
        ('{"at": 1, "tag": 3, "value": 1}', "occurrence"),
        ('{"at": 1, "tag": "t", "value": 1, "occurrence": "x"}', "occurrence"),
        ('{"at": 1, "tag": "t", "value": 1, "quality": "fine"}', "quality"),
        ('{"at": 1, "tag": "t", "value": 1, "quality": ["good"]}', "quality"),
        ('{"at": 1, "occurrence": "x", "job": 3}', "job"),
    ],
)
def test_invalid_line_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(LineError, match=reason):
        parse_line(text)


def test_bad_and_early_lines_are_skipped_and_reported_by_number() -> None:
    reports: list[tuple[int, str]] = []
    lines = ['{"at": 5, "tag": "t", "value": 1}', "", "x", '{"at": 4, "tag": "t", "value": 2}']
    lines += ['{"at": 5, "tag": "t", "value": 3}']
    found = list(read_lines(lines, lambda number, reason: reports.append((number, reason))))
    assert [sample.value for sample in found if isinstance(sample, Sample)] == [1, 3]
    assert [number for number, _ in reports] == [3, 4]
    assert "earlier" in reports[1][1]

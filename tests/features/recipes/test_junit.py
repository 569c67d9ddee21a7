"""Results of tests as JUnit XML, read by a parser of XML."""

from xml.etree import ElementTree as ET

from edge.features.recipes.junit import junit_xml
from edge.features.recipes.recipe_tests import RecipeTestResult

PASSED = RecipeTestResult(id="good day", work_master='A "<&>"', reasons=(), end="completed", seconds=12.5)
FAILED = RecipeTestResult(id="bad\x00 day", work_master="B", reasons=("the job ends as <failed>", "& waits"))


def test_each_work_master_is_a_suite_with_its_failures() -> None:
    root = ET.fromstring(junit_xml([PASSED, FAILED]))  # noqa: S314 - our own
    assert root.attrib == {"name": "recipes", "tests": "2", "failures": "1"}
    assert [(suite.get("name"), suite.get("failures")) for suite in root] == [('A "<&>"', "0"), ("B", "1")]
    cases = [(case.get("name"), case.get("time")) for case in root.iter("testcase")]
    assert cases == [("good day", "12.500"), ("bad  day", None)]
    assert [failure.text for failure in root.iter("failure")] == ["the job ends as <failed>; & waits"]

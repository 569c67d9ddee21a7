"""The facts of a POU are read wherever a tool puts them."""

from edge.features.recipes.plcopen.document import read_document
from edge.features.recipes.plcopen.facts import Pou, codesys_attributes, read_pou
from edge.features.recipes.plcopen.finding import PlcFinding
from tests.features.recipes.plcopen.drawn import (
    NAMESPACE,
    chart,
    element,
    faults_of,
    initial,
    local,
    pou,
    project,
    recipe_of,
    step,
    variable,
    when,
)

ONE = pou(initial(1, "Only"), name="One")
TWO = pou(initial(1, "Init"), when(2, "a", 1), step(3, "End", 2), name="Two")
CODE = '<pou name="Code" pouType="program"><body><ST/></body></pou>'


def facts(data: bytes, name: str = "") -> tuple[Pou, list[str]]:
    faults: list[PlcFinding] = []
    return read_pou(read_document(data), name, faults), [str(fault.text) for fault in faults]


def test_the_only_chart_of_a_file_is_read() -> None:
    assert [name["name"] for name in recipe_of(project(CODE, TWO))["steps"]] == ["Init", "End"]


def test_a_pou_is_chosen_without_regard_to_case() -> None:
    assert len(recipe_of(project(ONE, TWO), pou="tWo")["steps"]) == 2


def test_an_unclear_pou_is_a_fault_that_names_the_charts() -> None:
    assert faults_of(project(ONE, TWO)) == ["line 4: several POUs have a chart: One, Two; choose one with --pou"]
    assert faults_of(project(ONE, CODE), pou="Code") == [
        "line 2: no POU with a chart has the name 'Code'; there are: One"
    ]
    assert faults_of(project(CODE)) == ["line 2: the file has no POU with a chart (SFC)"]
    assert faults_of(project(ONE, ONE.replace("One", "ONE")), pou="one")


def test_a_pou_in_the_data_of_a_resource_is_found() -> None:
    """CODESYS exports the POUs of an application there."""
    data = f'<addData><data name="http://www.3s-software.com/plcopenxml/pou" handleUnknown="x">{TWO}</data></addData>'
    instances = f'<configuration name="c"><resource name="r">{data}</resource></configuration>'
    assert len(recipe_of(project(instances=instances))["steps"]) == 2


def test_an_external_constant_has_the_value_of_the_global_one() -> None:
    outer = f'<globalVars constant="true">{variable("Limit", "TIME", "T#3s")}</globalVars>'
    instances = f'<configuration name="c">{outer}</configuration>'
    inner = f'<externalVars constant="true">{variable("LIMIT", "TIME")}</externalVars>'
    found = facts(project(pou(initial(1, "A"), variables=inner), instances=instances))[0].variables["LIMIT"]
    assert (found.name, found.initial, found.is_constant) == ("Limit", "T#3s", True)


def test_numbers_up_to_64_bits_are_ids_and_zero_is_one() -> None:
    largest = 2**64 - 1
    assert set(facts(chart(initial(0, "A"), when(largest, "go", 0), step(7, "B", largest)))[0].elements) == {
        0,
        7,
        largest,
    }
    assert len(recipe_of(chart(initial(0, "A"), when(largest, "go", 0), step(7, "B", largest)))["steps"]) == 2


def test_a_number_that_is_none_or_stands_twice_is_a_fault_with_its_line() -> None:
    wrong = [element("step", 1).replace('"1"', f'"{text}"', 1) for text in (str(2**64), "-1", "x", "9" * 5000)]
    assert facts(chart(*wrong))[1] == [f"step needs a localId from 0 to {2**64 - 1}"] * 4
    assert facts(chart(initial(1, "A"), step(1, "B")))[1] == ["the localId stands in line 5, too"]
    assert "the position '1e999' is not a number" in facts(chart(initial(1, "A").replace('x="0"', 'x="1e999"')))[1]


def test_names_that_are_declared_twice_or_too_long_are_faults() -> None:
    twice = local(variable("a", "BOOL"), variable("A", "INT"))
    assert "the variable is declared twice" in facts(chart(initial(1, "A"), variables=twice))[1]
    assert "the name has more than 256 characters" in facts(chart(initial(1, "A" * 300)))[1]


def test_elements_without_form_are_faults_and_comments_are_counted() -> None:
    kinds = ["macroStep", "block", "contact", "leftPowerRail", "outVariable", "connector", "vendorElement", "label"]
    others = [element(kind, number) for number, kind in enumerate(kinds, 10)]
    read, faults = facts(chart(initial(1, "A"), *others, element("comment", 30)))
    assert faults == [f"{kind} is not carried over: it has no form in a recipe" for kind in kinds]
    assert read.comments == 1


def test_the_documentation_of_elements_counts_as_comments() -> None:
    text = "<documentation><xhtml:p>why</xhtml:p></documentation>"
    noted = initial(1, "A", content=text)
    action = f'<action localId="0"><reference name="a"/>{text}</action>'
    assert facts(chart(noted, element("actionBlock", 2, 1, content=action)))[0].comments == 2
    assert facts(chart(initial(1, "A", content="<documentation><xhtml:p/></documentation>")))[0].comments == 0


def test_attributes_of_codesys_are_read_by_their_guid() -> None:
    attributes = '<attributes xmlns=""><attribute guid="AB-1"> Go </attribute></attributes>'
    name = "http://www.3s-software.com/plcopenxml/sfc/element"
    node = f'<step xmlns="{NAMESPACE}"><addData><data name="{name}">{attributes}</data></addData></step>'
    root = read_document(f'<project xmlns="{NAMESPACE}">{node}</project>'.encode())
    assert [codesys_attributes(child) for child in root.children] == [{"ab-1": "Go"}]

"""Charts of a PLC in a short notation: each function writes an element of TC6 XML 2.01 as its schema has it."""

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from edge.features.recipes.plcopen.reader import Imported, import_plcopen

NAMESPACE = "http://www.plcopen.org/xml/tc6_0201"
Json = dict[str, Any]


def project(*pous: str, namespace: str = NAMESPACE, instances: str = "") -> bytes:
    head = (
        '<fileHeader companyName="a" productName="b" productVersion="1" creationDateTime="2026-01-01T00:00:00"/>'
        '<contentHeader name="c"><coordinateInfo/></contentHeader>'
    )
    types = f"<types><dataTypes/><pous>{''.join(pous)}</pous></types>"
    place = f"<instances><configurations>{instances}</configurations></instances>"
    root = f'<project xmlns="{namespace}" xmlns:xhtml="http://www.w3.org/1999/xhtml">'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{root}\n{head}\n{types}\n{place}\n</project>'.encode()


def pou(*elements: str, name: str = "Main", variables: str = "", transitions: str = "", actions: str = "") -> str:
    body = "\n".join(elements)
    return (
        f"<pou name={quoteattr(name)} pouType='program'><interface>{variables}</interface><actions>{actions}</actions>"
        f"<transitions>{transitions}</transitions><body><SFC>\n{body}\n</SFC></body></pou>"
    )


def chart(*elements: str, **parts: str) -> bytes:
    return project(pou(*elements, **parts))


def inputs(*numbers: int) -> str:
    """One input with a connection to each element."""
    connections = (f'<connection refLocalId="{number}"/>' for number in numbers)
    return f"<connectionPointIn>{''.join(connections)}</connectionPointIn>"


def element(kind: str, number: int, *after: int, x: float = 0, content: str = "", **attributes: str) -> str:
    """An element with one input for all that stands before it; a convergence has an input for each."""
    pins = "".join(map(inputs, after)) if kind.endswith("Convergence") else inputs(*after) if after else ""
    words = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f'<{kind} localId="{number}"{words}><position x="{x}" y="0"/>{pins}{content}</{kind}>'


def step(number: int, name: str, *after: int, **more: Any) -> str:
    return element("step", number, *after, name=name, **more)


def initial(number: int, name: str, *after: int, **more: Any) -> str:
    return element("step", number, *after, name=name, initialStep="true", **more)


def st(text: str) -> str:
    return f"<ST><xhtml:p>{escape(text)}</xhtml:p></ST>"


def when(number: int, text: str, *after: int, **more: Any) -> str:
    """A transition with its condition in Structured Text."""
    condition = f'<condition><inline name="">{st(text)}</inline></condition>'
    return element("transition", number, *after, content=condition, **more)


def transition(number: int, *after: int, condition: str = "", **more: Any) -> str:
    content = f"<condition>{condition}</condition>" if condition else ""
    return element("transition", number, *after, content=content, **more)


def jump(number: int, target: str, *after: int) -> str:
    return element("jumpStep", number, *after, targetName=target)


def choice(number: int, *after: int) -> str:
    return element("selectionDivergence", number, *after)


def join(number: int, *after: int) -> str:
    return element("selectionConvergence", number, *after)


def fork(number: int, *after: int, **more: Any) -> str:
    return element("simultaneousDivergence", number, *after, **more)


def meet(number: int, *after: int) -> str:
    return element("simultaneousConvergence", number, *after)


def block(number: int, before: int, *actions: str) -> str:
    return element("actionBlock", number, before, content="".join(actions))


def does(name: str, qualifier: str = "N", duration: str = "") -> str:
    words = f' duration="{duration}"' if duration else ""
    content = f'<relPosition x="0" y="0"/><reference name="{name}"/>'
    return f'<action localId="0" qualifier="{qualifier}"{words}>{content}</action>'


def inline(text: str) -> str:
    return f'<action localId="0"><relPosition x="0" y="0"/><inline>{st(text)}</inline></action>'


def source(number: int, text: str, **attributes: Any) -> str:
    return element("inVariable", number, content=f"<expression>{escape(text)}</expression>", **attributes)


def variable(name: str, kind: str, value: str = "") -> str:
    initial_value = f"<initialValue><simpleValue value={quoteattr(value)}/></initialValue>" if value else ""
    return f'<variable name="{name}"><type><{kind}/></type>{initial_value}</variable>'


def local(*variables: str, constant: bool = False) -> str:
    attribute = ' constant="true"' if constant else ""
    return f"<localVars{attribute}>{''.join(variables)}</localVars>"


def recipe_of(data: bytes, **options: Any) -> Json:
    imported = import_plcopen(data, **options)
    assert imported.recipe is not None, [fault.stated("en") for fault in imported.faults]
    return imported.recipe


def faults_of(data: bytes, **options: Any) -> list[str]:
    imported = import_plcopen(data, **options)
    assert imported.recipe is None, imported.recipe
    return [fault.stated("en") for fault in imported.faults]


def warnings_of(imported: Imported) -> list[str]:
    return [warning.stated("en") for warning in imported.warnings]


def condition_of(text: str, variables: str = "", **options: Any) -> str:
    """Import a chart whose only condition is a text, and return the condition of the recipe."""
    data = chart(initial(1, "Wait"), when(2, text, 1), step(3, "Done", 2), variables=variables)
    return str(recipe_of(data, **options)["transitions"][0]["condition"])


def refusal_of(text: str, variables: str = "", **options: Any) -> str:
    """Import a chart whose only condition is a text that is refused, and return the only fault."""
    data = chart(initial(1, "Wait"), when(2, text, 1), step(3, "Done", 2), variables=variables)
    (fault,) = faults_of(data, **options)
    return fault

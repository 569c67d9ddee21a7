"""Read JSON that a person wrote in a file, within the limits of a message; errors name line and column."""

import codecs
import json
from typing import Any

from edge.foundation.errors import Refused
from edge.model.cloudevent import JSON, decode_data


def read_json_text(text: bytes) -> Any:
    """Decode a JSON text within the limits of a message; the byte order mark of some editors is ignored.

    Raises Refused(`unreadable`) for what is not JSON, and for what a gateway would refuse as a message.
    """
    plain = text.removeprefix(codecs.BOM_UTF8)
    try:
        # The strict decoder below reports a byte offset; an author needs line and column.
        json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise Refused("unreadable", f"not JSON: {error}", "Correct the file.") from None
    return decode_data(JSON, plain)

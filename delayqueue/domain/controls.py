"""Control characters in other people's text: they move a terminal's cursor, or hide or reverse text."""

import json
import re
from typing import Any, Final

# C0 without the line end, DEL and C1 (U+009B is what ESC [ is), ends of lines, and those that turn the direction
CONTROLS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escaped(text: str, escape: str = "\\") -> str:
    r"""The text with \u001b for a control character; `escape` is the backslash as the text's format has it."""
    return CONTROLS.sub(lambda found: f"{escape}u{ord(found[0]):04x}", text)


def json_line(data: Any) -> str:
    """JSON that is safe to show on a terminal, and has the same value for programs."""
    return escaped(json.dumps(data, ensure_ascii=False))

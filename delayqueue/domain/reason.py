"""Why a job was buried, worded alike for jobs that failed for the same cause."""

import re
from typing import Final

MAX_REASON_CHARS: Final = 200
TRACEBACK: Final = "Traceback ("  # Python's; its last line names the exception
# ids: words of hexadecimal digits with a number among them, and numbers of four digits or more. Not 503, not "30 s".
VARYING: Final = re.compile(r"\b(?=[a-f-]*[0-9])[0-9a-f]{8}[0-9a-f-]*\b|[0-9]{4,}", re.IGNORECASE)


def reason_of(message: str) -> str:
    """The line of a message that says what went wrong, with # instead of ids and numbers; "" = no reason."""
    lines = [line for line in map(str.strip, message.splitlines()) if line]
    if not lines:
        return ""
    said = lines[-1] if lines[0].startswith(TRACEBACK) else lines[0]
    return VARYING.sub("#", said)[:MAX_REASON_CHARS]

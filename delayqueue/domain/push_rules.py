"""What /push takes, as rules that need no server: for those who keep a job before they push it. Pure."""

from typing import Final

# Removed by the original's strings.TrimSpace, and by pydantic's strip_whitespace, too.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
NEW_ID: Final = "*"  # as an id: a unique one is to be made


def stripped(name: str) -> str:
    """An id or a topic as the server understands it: without the white space at its ends."""
    return name.strip(WHITE_SPACE)

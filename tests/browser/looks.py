"""The looks of the page: its width, its language and its colours; and its texts in that language."""

import json
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import delayqueue.web

LINE: Final = re.compile(r"^  \w+: (\[.*\]),$", re.MULTILINE)
SOURCE: Final = Path(delayqueue.web.__file__).parent / "static" / "admin" / "js" / "i18n.js"
# the page's own table: [English, Chinese]
TEXTS: Final[list[list[str]]] = [json.loads(pair) for pair in LINE.findall(SOURCE.read_text())]
GAP: Final = re.compile(r"\{(\d)\}")
LENGTH: Final = re.compile(r"(\d+)([dhm])")
UNITS: Final = {"d": "天", "h": "小时", "m": "分"}


@dataclass(frozen=True)
class Look:
    width: int  # pixels
    language: str  # en or zh
    theme: str  # light or dark

    def __str__(self) -> str:
        return f"{self.width}-{self.language}-{self.theme}"

    def text(self, english: str) -> str:
        """The page's text for this English one. Raises LookupError if there is none.

        A hint in parentheses at the end may be left out. A length of time, such as 2d, has its unit's name.
        """
        if length := LENGTH.fullmatch(english):
            return english if self.language == "en" else f"{length[1]}{UNITS[length[2]]}"
        found = {
            (own, GAP.sub(lambda gap: self._value(match[f"gap{gap[1]}"]), chinese))
            for own, chinese in TEXTS
            if (match := re.fullmatch(_with_gaps(own, r"(?P<gap\1>.*)"), english))
        } or {(own, chinese) for own, chinese in TEXTS if own.startswith(f"{english} (")}
        # of texts that differ only in their gaps, the one with the most words of its own
        own, chinese = max(found, key=lambda pair: len(GAP.sub("", pair[0])), default=("", ""))
        if not own or any(other == own and said != chinese for other, said in found):
            raise LookupError(f"the page says {english!r} nowhere, or with several meanings")
        return english if self.language == "en" else chinese

    def pattern(self, english: str) -> re.Pattern[str]:
        """The same as a pattern: {0} or {1} in the English stands for whatever the page has there."""
        return re.compile(_with_gaps(self.text(english), ".*"))

    def _value(self, text: str) -> str:
        """A gap may be filled by a text of the page itself, such as a count of jobs."""
        try:
            return self.text(text)
        except LookupError:
            return text


def _with_gaps(text: str, gap: str) -> str:
    """A text as a regular expression, with this in its gaps."""
    return GAP.sub(gap, re.sub(r"\\([{}])", r"\1", re.escape(text)))


ALL: Final = [Look(*each) for each in product((1280, 390), ("en", "zh"), ("light", "dark"))]
DESK: Final = Look(1280, "en", "light")
PHONE: Final = Look(390, "zh", "dark")  # that differs in each

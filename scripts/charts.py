"""The pictures of docs/performance.md, drawn from its tables: bars, as SVG."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCS: Final = Path(__file__).parents[1] / "docs"
MEASURED: Final = DOCS / "performance.md"
WIDTH: Final = 720
LEFT, RIGHT, TOP, BAR, GAP = 190, 90, 44, 18, 16
OURS: Final = "#00796b"
OTHERS: Final = "#9aa7b0"  # colour-blind readers tell the two apart, too
TEXT: Final = 'font-family="system-ui, sans-serif" font-size="13" fill="#333"'


class Chart(NamedTuple):
    """Groups of bars: the number of each server, in each group. None = not measured."""

    title: str
    unit: str
    servers: tuple[str, ...]
    groups: Mapping[str, tuple[float | None, ...]]


def pictures() -> dict[Path, str]:
    """What each picture should be."""
    page = MEASURED.read_text("utf-8")
    images = DOCS / "images"
    return {images / "rates.svg": drawn(rates(page)), images / "memory.svg": drawn(memory(page))}


def rates(page: str) -> Chart:
    """Jobs a second of each server in the first table of the page."""
    named = {
        "push": "push, one job a request, jobs/s",
        "push, 100 at a time": "push in batches of 100, jobs/s",
        "push, pop and finish": "push, pop and finish, jobs/s",
    }
    groups = {name: numbers(page, row) for name, row in named.items()}
    [servers, *_] = re.findall(r"^\| \| (.*) \|$", page, re.MULTILINE)
    return Chart("Jobs a second", "/s", tuple(servers.split(" | ")), groups)


def memory(page: str) -> Chart:
    """Bytes of a sleeping job."""
    servers = ("this server, wheel", "this server, zset", "ouqiang")
    groups = {}
    for body in ("40 bytes", "200 bytes"):
        original, zset, _, wheel, _ = numbers(page, body)
        groups[f"a body of {body}"] = (wheel, zset, original)
    return Chart("Bytes of Redis for a sleeping job", "", servers, groups)


def numbers(page: str, row: str) -> tuple[float | None, ...]:
    """The first number of each cell of a row, None for a cell that has none."""
    found = re.search(rf"^\| {re.escape(row)} \| (.*) \|$", page, re.MULTILINE)
    cells = found[1].split(" | ") if found else []
    first = (re.search(r"\d[\d,.]*\d|\d", cell) for cell in cells)
    return tuple(number and float(number[0].replace(",", "")) for number in first)


def drawn(chart: Chart) -> str:
    """The chart as an SVG document."""
    bars = sum(value is not None for values in chart.groups.values() for value in values)
    height = TOP + bars * (BAR + 2) + len(chart.groups) * GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {TEXT}>\n'
        f"<title>{escape(chart.title)}</title>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>\n'
        f'<text x="16" y="28" font-size="15" font-weight="600">{escape(chart.title)}</text>\n'
        + "".join(f"{shape}\n" for shape in shapes(chart))
        + "</svg>\n"
    )


def shapes(chart: Chart) -> Iterator[str]:
    """Bars with the server on their left and the number on their right, under a line for each group."""
    longest = max(value or 0 for values in chart.groups.values() for value in values)
    y = TOP
    for name, values in chart.groups.items():
        yield f'<text x="16" y="{y + 13}" font-weight="600">{escape(name)}</text>'
        for server, value in zip(chart.servers, values, strict=True):
            if value is None:
                continue
            colour = OURS if server.startswith("this server") else OTHERS
            length = max(2, round((WIDTH - LEFT - RIGHT - 110) * value / longest))
            yield f'<text x="{LEFT + 100}" y="{y + 13}" text-anchor="end">{escape(server)}</text>'
            yield f'<rect x="{LEFT + 110}" y="{y}" width="{length}" height="{BAR}" rx="2" fill="{colour}"/>'
            yield f'<text x="{LEFT + 118 + length}" y="{y + 13}">{value:,.0f}{chart.unit}</text>'
            y += BAR + 2
        y += GAP

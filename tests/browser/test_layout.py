"""What stands where at each width: no ragged rows, no tile alone, nothing squeezed beside empty space."""

from collections import Counter
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from delayqueue.client import Client
from tests.browser.conftest import ONE_LOOK, Admin, bury

PHONE = 720  # px; narrower ones have the phone's layout

HEIGHT: Final = 900
GATE: Final = "the gate is shut"
TOPICS: Final = 5  # of a reason
TALLEST: Final = 100  # pixels of a reason with its example and its topics
WORST_S: Final = 1361  # 22m 41s


def tops(page: Page, elements: str) -> list[int]:
    """The rows of these elements, from the first element on."""
    found: list[Any] = page.locator(elements).evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().top))"
    )
    return found


@ONE_LOOK
@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (1440, 1),
        (1200, 1),
        (1024, 2),  # the navigation has a row of its own
        (768, 2),
        (390, 3),  # the search, too
    ],
)
def test_the_header_has_full_rows_and_its_navigation_one_line(
    admin: Admin, width: int, rows: int
) -> None:
    admin.page.set_viewport_size({"width": width, "height": HEIGHT})
    page = admin.open("servers")
    if width > PHONE:  # on which all entries are within reach without a push
        assert len(set(tops(page, "nav a"))) == 1
    middles: list[float] = page.locator("header > *").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => (box.top + box.bottom) / 2)"
    )
    assert len({round(middle / 10) for middle in middles}) == rows
    expect(page.locator("nav a[aria-current]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@ONE_LOOK
@pytest.mark.parametrize(
    ("width", "rows"),
    [(1440, [7]), (1200, [7]), (1024, [4, 3]), (768, [4, 3]), (390, [2, 2, 2, 1])],
)
def test_tiles_fill_their_rows(admin: Admin, width: int, rows: list[int]) -> None:
    admin.page.set_viewport_size({"width": width, "height": HEIGHT})
    page = admin.open("")
    page.locator(".tile").first.wait_for()
    assert list(Counter(tops(page, ".tile")).values()) == rows
    ends: list[int] = page.locator(".tile").evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().right))"
    )
    right = max(ends)
    assert Counter(ends)[right] == len(rows)


@ONE_LOOK
def test_dead_letters_of_many_topics_stay_short(admin: Admin, queue: Client, topic: str) -> None:
    for number in range(TOPICS):
        bury(queue, f"{topic}.{number}", 1, message=GATE)
    admin.page.set_viewport_size({"width": 1440, "height": HEIGHT})
    row = admin.open("dead").locator("tbody tr", has_text=GATE)
    expect(row).to_contain_text(f"{topic}.0 1")
    box = row.bounding_box()
    assert box
    assert box["height"] < TALLEST


@ONE_LOOK
def test_the_ticks_of_durations_are_ones_that_people_count_in(admin: Admin) -> None:
    page = admin.open("")
    page.locator(".past .u-over").wait_for()
    steps = page.evaluate(
        """async (worst) => {
            const { past } = await import("./admin/js/chart.js");
            const { length } = await import("./admin/js/format.js");
            const { data, draw } = past("x", { label: "", step: 60, marks: [], series: [["", "--ready"]],
              format: length }, [[0, 60], [0, worst]]).props;
            const plot = draw(document.querySelector(".past .chart"), data);
            await new Promise(requestAnimationFrame);
            return plot.axes[1]._values;
        }""",
        WORST_S,
    )
    assert steps == ["0 ms", "5m", "10m", "15m", "20m"]

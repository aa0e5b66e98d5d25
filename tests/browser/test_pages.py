"""The frame of the page at /admin, and what all its pages have in common, in a real browser."""

import json
import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from delayqueue.client import Client
from tests.browser.conftest import IN_BOTH, ON_PHONE, ONE_LOOK, Admin, holding, let_go
from tests.processes import Processes, QueueServer, StoreServer

PLACES: Final = (
    "",
    "topics",
    "dead",
    "topic/mail",
    "job/mail-1",
    "tag/order:1",
    "find/mail",
    "push",
    "servers",
    "workers",
    "subscribers",
    "schedules",
    "calls",
    "no",
)
DARK: Final = "rgb(15, 19, 26)"
NARROWEST: Final = 360  # pixels; many phones have this width
SCRIPT: Final = "<img src=x onerror=alert(1)><script>alert(1)</script>"
# the time limits of the page's calls end when the test says so
LIMITS_BY_HAND: Final = """
    window.limits = [];
    window.AbortController = class extends AbortController { constructor() { super(); limits.push(this); } };
    limits.length;
"""
# an answer in three pieces, between which nearly the whole time limit passes
IN_PIECES: Final = """async () => {
    const { call } = await import("./admin/js/api.js");
    const [limits, pieces] = [new Map(), ['{"code": 0, ', '"data": ', '"all"}']];
    window.setTimeout = (work) => limits.set(limits.size + 1, work).size;
    window.clearTimeout = (place) => limits.set(place, () => {});
    let running = [];
    const pull = (rest) => {
        running.forEach((place) => limits.get(place)());
        running = [...limits.keys()];
        if (pieces.length) rest.enqueue(new TextEncoder().encode(pieces.shift()));
        else rest.close();
    };
    window.fetch = async (_, { signal }) => {
        const start = (rest) => signal.addEventListener("abort", () => rest.error(signal.reason));
        return new Response(new ReadableStream({ start, pull }, { highWaterMark: 0 }));
    };
    return call("whoami");
}"""


@IN_BOTH
def test_every_page_shows_itself_and_needs_no_scrolling_sideways(
    admin: Admin, queue: Client
) -> None:
    queue.push("mail", "Hello", id="mail-1", delay=600, tags=["order:1"])
    width = NARROWEST if admin.look.width < 1000 else admin.look.width
    admin.page.set_viewport_size({"width": width, "height": 740})
    widths = {}
    for place in PLACES:
        page = admin.open(place)
        expect(page.locator("nav a")).to_have_count(9)
        language = {"en": "en", "zh": "zh-CN"}[admin.look.language]
        assert page.locator("html").get_attribute("lang") == language
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == DARK
        assert dark == (admin.look.theme == "dark")
        page.wait_for_timeout(100)  # for a chart that takes the available width
        widths[place] = page.evaluate("document.documentElement.scrollWidth")
    page.goto(page.url.partition("/admin")[0] + "/docs")
    widths["docs"] = page.evaluate("document.documentElement.scrollWidth")
    assert {place: needed for place, needed in widths.items() if needed > width} == {}


@ONE_LOOK
@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("job/50%25%", "This page does not exist."),
        ("constructor", "This page does not exist."),
        ("topic/[x", "[x"),
        ("find/{x", "Results for “{x”"),
    ],
)
def test_an_address_that_is_written_wrongly_shows_a_page(
    admin: Admin, place: str, says: str
) -> None:
    page = admin.open(place)
    expect(page.locator("nav a")).to_have_count(9)
    expect(page.locator("main h1, main .empty").first).to_contain_text(says)


@ONE_LOOK
def test_language_and_theme_are_kept(admin: Admin) -> None:
    page = admin.open("")
    admin.press("中文")
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    page.get_by_role("button", name="深色或浅色").click()
    page.reload()
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    assert page.locator("html").get_attribute("data-theme") == "dark"


# whether the first chart has pixels in the present colour of lines
IS_DRAWN: Final = """() => {
    const canvas = document.querySelector("canvas");
    const line = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    const wanted = line.slice(1).match(/../g).map((part) => parseInt(part, 16));
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) if (wanted.every((value, of) => data[at + of] === value)) return true;
    return false;
}"""


@ONE_LOOK
def test_charts_are_drawn_again_when_the_system_turns_dark(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=600)
    page = admin.open(f"topic/{topic}")
    page.wait_for_function(IS_DRAWN)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(IS_DRAWN, timeout=15_000)
    page.emulate_media(color_scheme="light")


@ONE_LOOK
@pytest.mark.parametrize("place", ["job/{id}", "topic/{topic}", "find/{id}"])
def test_a_script_in_a_job_is_shown_as_text(
    admin: Admin, queue: Client, topic: str, place: str
) -> None:
    names = {"id": f"{topic}{SCRIPT}", "topic": f"{topic}{SCRIPT}"}
    body = json.dumps({"name": SCRIPT})
    queue.push(names["topic"], body, id=names["id"], tags=[SCRIPT], retry=["1h"])
    job = queue.pop(names["topic"], wait=5)
    assert job
    queue.bury(job, message=SCRIPT)
    page = admin.open(place.format_map(_quoted(admin.page, names)))
    expect(page.locator("main")).to_contain_text(SCRIPT)
    assert page.locator("main script, main img").count() == 0


def _quoted(page: Page, names: dict[str, str]) -> dict[str, str]:
    return {key: page.evaluate("encodeURIComponent", name) for key, name in names.items()}


@ON_PHONE
def test_the_environment_is_named_in_its_colour_also_where_a_topic_is_purged(
    visit: Callable[[QueueServer], Admin], processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, admin_title="Production, red")
    admin = visit(server)
    page, away = admin.page, {"code": 6, "message": "away", "data": None}
    page.route("**/whoami", lambda route: route.fulfill(status=503, json=away))
    admin.open('topic/["mail","all","-"]')
    strip = page.locator("#environment div")
    expect(strip).to_have_count(0)
    page.unroute("**/whoami")
    expect(strip).to_have_text("Production")
    expect(strip).to_have_css("background-color", "rgb(185, 28, 28)")
    expect(page).to_have_title("Production · mail · delay-queue")
    admin.press("Purge")
    expect(page.locator("dialog").get_by_role("alert")).to_have_text("Production")
    server.close()


@ONE_LOOK
def test_a_server_that_is_away_is_said_and_comes_back(
    visit: Callable[[QueueServer], Admin], processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server)
    admin = visit(server)
    page = admin.open("")
    expect(page.locator(".tile").first).to_be_visible()
    server.stop()
    complaint = admin.said("The server does not answer. Trying again…")
    expect(complaint).to_be_visible()
    expect(complaint).to_contain_text(admin.pattern("Data as of {0}."))
    stale = page.locator(".stale .tile").first
    expect(stale).to_be_visible()
    server.start()
    expect(complaint).to_have_count(0)
    expect(stale).to_have_count(0)
    expect(page.locator(".tile").first).to_be_visible()
    admin.complaints.clear()  # the browser's own lines about refused connections
    server.close()


@IN_BOTH
def test_a_server_that_is_silent_counts_as_away_also_for_what_was_asked_of_it(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=600)
    page = admin.open(f"topic/{topic}")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.evaluate(LIMITS_BY_HAND)
    with holding(page, "pause") as asked, holding(page, "list") as read:
        admin.confirm("Pause")
        asked()
        read()
        page.evaluate("performance.now = () => 1e7")  # the load has taken hours
        page.evaluate("limits.forEach((one) => one.abort())")
        words = "The server did not answer. What you asked for may have been done all the same."
        expect(admin.said(words)).to_be_visible()
        expect(admin.button("Pause")).not_to_have_attribute("aria-disabled", "true")
        expect(admin.said("The server does not answer. Trying again…")).to_be_visible()
        expect(page.locator(".stale tbody tr")).to_have_count(1)
    page.evaluate("limits.forEach((one) => one.abort())")  # the next one that was held
    expect(page.locator(".stale")).to_have_count(0)


@ONE_LOOK
def test_figures_of_a_tab_that_slept_are_dimmed_until_there_are_new_ones(
    admin: Admin, topic: str
) -> None:
    page = admin.open(f"topic/{topic}")
    with holding(page, "list") as next_one:
        held = next_one()
        page.evaluate(
            "Object.defineProperty(document, 'hidden', {get: () => window.isHidden ?? true})"
        )
        let_go(page, held)
        page.evaluate("const now = Date.now; Date.now = () => now() + 3.6e6; isHidden = false")
        held = next_one()
        expect(page.locator(".stale h1")).to_be_visible()
        expect(admin.said("Loading…")).to_contain_text("Data as of")
        held.fulfill(status=503, json={"code": 6, "message": "store away", "data": None})
        expect(page.get_by_role("alert")).to_contain_text("store away")
        held = next_one()
        page.wait_for_timeout(50)
        expect(page.get_by_role("alert")).to_contain_text("store away")
        let_go(page, held)
    expect(page.locator(".stale")).to_have_count(0)


@ONE_LOOK
def test_a_server_whose_answer_takes_long_to_arrive_is_not_silent(admin: Admin) -> None:
    assert admin.open("push").evaluate(IN_PIECES) == "all"


def test_the_zone_of_all_times_is_named(admin: Admin) -> None:
    page = admin.open("")
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    note = admin.pattern("All times are in this browser's time zone, {0}.")
    expect(page.locator("footer")).to_have_text(note)
    expect(page.locator("footer")).to_contain_text(zone)
    expect(page.locator("footer")).not_to_contain_text("UTC (UTC)")
    expect(page.locator("#tools .zone")).to_have_text(re.compile(r"^UTC([+−]\d+(:\d\d)?)?$"))


def test_settings_that_were_changed_are_shown_with_their_place_and_all_on_demand(
    admin: Admin,
) -> None:
    page = admin.open("servers")
    rows = page.locator("tbody tr")
    allowed = rows.filter(has_text="webhook_allow")
    expect(allowed).to_contain_text("127.0.0.1/32")
    expect(allowed).to_contain_text("DELAYQUEUE_WEBHOOK_ALLOW")
    usual = rows.filter(has_text="log_format")
    expect(usual).to_have_count(0)
    admin.press("all")
    expect(usual).to_contain_text(admin.text("default"))

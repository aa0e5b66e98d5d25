"""Who may use the page at /admin, and what the log says about it."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Final

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client
from delayqueue.web.auth import UNKNOWN
from tests.browser.conftest import IN_BOTH, ON_PHONE, ONE_LOOK, Admin, bury
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import wait_until

ADMIN_TOKEN: Final = "an-admins-token-of-the-tests"
VIEWER_TOKEN: Final = "a-viewers-token-of-the-tests"
SOME_TOPICS_TOKEN: Final = "an-admins-token-for-some-topics"
PRODUCER_TOKEN: Final = "a-producers-token-of-the-tests"
CHANGES: Final = (
    "Kick",
    "Retry",
    "Delete",
    "Pause",
    "Limit",
    "Purge",
    "Add",
    "Remove",
    "Clone",
    "Reschedule",
    "Note",
)
TOKENS: Final = (
    f"admin:{ADMIN_TOKEN}, produce:{PRODUCER_TOKEN}, view:{VIEWER_TOKEN}, "
    f"admin:{SOME_TOPICS_TOKEN}:orders.*"
)


@pytest.fixture(scope="module")
def guarded(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, auth_tokens=TOKENS)


@pytest.fixture
def admin(visit: Callable[[QueueServer], Admin], guarded: QueueServer) -> Admin:
    return visit(guarded)


def sign_in(admin: Admin, token: str, place: str = "") -> None:
    admin.go(place)
    admin.page.locator("dialog input").fill(token)
    admin.press("Sign in")


def test_a_token_is_asked_for_once_and_kept_for_the_tab(admin: Admin) -> None:
    page = admin.page
    sign_in(admin, "a-token-that-nobody-knows")
    unknown = {"en": UNKNOWN.en, "zh": UNKNOWN.zh}[admin.look.language]
    expect(page.get_by_role("alert")).to_have_text(unknown)
    page.locator("dialog input").fill(ADMIN_TOKEN)
    admin.press("Sign in")
    expect(page.locator(".tile").first).to_be_visible()
    page.reload()
    expect(page.locator(".tile").first).to_be_visible()
    admin.press("Sign out")
    expect(page.locator("dialog input")).to_be_visible()


@ONE_LOOK
def test_figures_are_fresh_however_long_it_took_to_sign_in(
    admin: Admin, guarded: QueueServer, topic: str
) -> None:
    admin.go(f"topic/{topic}")
    page = admin.page
    page.locator("dialog input").fill(ADMIN_TOKEN)
    page.evaluate("performance.now = () => 1e7")  # hours later
    admin.press("Sign in")
    expect(page.locator("main h1")).to_be_visible()
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        queue.push(topic, delay=900)
    expect(page.locator("tbody tr")).to_have_count(1)


@ONE_LOOK
@pytest.mark.parametrize(
    ("place", "button", "done"),
    [
        ("push", "Push", "form p a"),
        ("clone/{0}", "Push", "form p a"),
        ("edit/{0}", "Retry", "dd .state"),
    ],
)
def test_a_form_asks_for_a_token_and_keeps_what_was_typed(
    admin: Admin, guarded: QueueServer, topic: str, place: str, button: str, done: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        bury(queue, topic, 1)
        [letter] = queue.list_jobs(topic).jobs
    sign_in(admin, ADMIN_TOKEN, place.format(letter.id))
    page = admin.page
    admin.field("Body").fill("long work")
    if place == "push":
        admin.field("Topic").fill(topic)
    page.evaluate("sessionStorage.setItem('token', 'one-that-has-ended')")
    admin.press(button)
    expect(page.locator("dialog").get_by_role("alert")).to_have_text(UNKNOWN.en)
    page.locator("dialog input").fill(ADMIN_TOKEN)
    admin.press("Sign in")
    admin.press(button)
    expect(page.locator(done)).to_be_visible()
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        assert "long work" in [
            found.body for job in queue.list_jobs(topic).jobs if (found := queue.get(job.id))
        ]


@ONE_LOOK
def test_a_question_whose_place_the_token_takes_counts_as_no(
    admin: Admin, guarded: QueueServer, topic: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        queue.push(topic, id=topic, delay=900)
    sign_in(admin, ADMIN_TOKEN, f"topic/{topic}")
    page = admin.page
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url.rpartition("/")[2]))
    page.locator("tbody tr").get_by_role("checkbox").check()
    admin.press("Delete")
    page.evaluate("sessionStorage.setItem('token', 'one-that-has-ended')")
    expect(page.locator("dialog input[type=password]")).to_be_visible()
    page.locator("dialog input").fill(ADMIN_TOKEN)
    admin.press("Sign in")
    expect(admin.button("Sign out")).to_be_visible()
    expect(page.locator("dialog")).to_be_hidden()
    assert page.evaluate("sessionStorage.getItem('token')") == ADMIN_TOKEN
    assert "delete" not in sent


def test_a_token_that_cannot_be_sent_is_refused_at_once(admin: Admin) -> None:
    sign_in(admin, f"{ADMIN_TOKEN}\u200b")
    words = (
        "A token has only ASCII characters; this one has others, perhaps an invisible one "
        "that was copied along."
    )
    expect(admin.page.get_by_role("alert")).to_have_text(admin.text(words))
    admin.page.locator("dialog input").fill(ADMIN_TOKEN)
    admin.press("Sign in")
    expect(admin.page.locator(".tile").first).to_be_visible()


@ON_PHONE
def test_what_is_done_with_the_page_stands_in_the_log(
    admin: Admin, guarded: QueueServer, topic: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        bury(queue, topic, 3)
    sign_in(admin, ADMIN_TOKEN, f"topic/{topic}")
    admin.list_only("buried")
    admin.press("Select all 3")
    admin.confirm("Kick")
    expect(admin.said("Done: 3 jobs.")).to_be_visible()
    admin.confirm("Pause")
    expect(admin.page.locator("h1 .tag")).to_have_text(admin.text("paused"))
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        ids = [job.id for job in queue.list_jobs(topic).jobs]
    who = f"by admin token {sha256(ADMIN_TOKEN.encode()).hexdigest()[:4]} from 127.0.0.1"
    did = [
        f'kick {{"jobs": 3, "ids": {json.dumps(ids)}}} {who}: 3 done, code 0',
        f'pause {{"topic": "{topic}"}} {who}: 1 done, code 0',
    ]

    def told() -> list[str]:
        return re.findall(r"page: (.*)", guarded.logged())[-2:]

    wait_until(lambda: told() == did)  # the page may see a pause before it is logged


@ONE_LOOK
def test_what_one_may_not_do_is_not_offered(admin: Admin) -> None:
    page = admin.page
    sign_in(admin, PRODUCER_TOKEN)
    expect(page.locator("nav a")).to_have_text(["Push a job"])
    admin.field("Topic").fill("mail")
    admin.press("Push")
    page.locator("form p a").click()
    expect(page.locator("main .bar button")).to_have_text(["Reschedule", "Delete"])


@IN_BOTH
def test_a_token_for_some_topics_begins_with_these_and_is_offered_no_view_of_all(
    admin: Admin, guarded: QueueServer
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        for topic in ("orders.paid", "other"):
            queue.push(topic, delay=900)
    sign_in(admin, SOME_TOPICS_TOKEN)
    page = admin.page
    expect(page.locator("nav a")).to_have_text([admin.text("Topics"), admin.text("Push a job")])
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("link", name="orders.paid").first.click()
    expect(page.locator("h1")).to_have_text(re.compile("orders.paid"))


@ONE_LOOK
def test_a_server_that_does_not_tell_what_one_may_do_is_left_to_refuse_it(admin: Admin) -> None:
    def as_before(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        if told["data"]:
            del told["data"]["endpoints"]
        route.fulfill(response=answer, json=told)

    page = admin.page
    page.route("**/whoami", as_before)
    try:
        sign_in(admin, VIEWER_TOKEN)
        expect(page.locator("nav a")).to_have_count(9)
        page.locator("nav a", has_text="Push a job").click()
        admin.field("Topic").fill("mail")
        admin.press("Push")
        expect(page.get_by_role("alert")).to_be_visible()
    finally:
        page.unroute("**/whoami")


def test_who_may_only_look_sees_all_and_is_offered_nothing(
    admin: Admin, guarded: QueueServer, topic: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        bury(queue, topic, 1, message="shut")
    sign_in(admin, VIEWER_TOKEN)
    expect(admin.page.locator("nav a")).to_have_count(8)  # all except the form that pushes
    changes = re.compile("|".join(map(admin.text, CHANGES)))
    for place in ("dead", f"topic/{topic}", "subscribers", "schedules"):
        page = admin.open(place)
        expect(page.get_by_role("button", name=changes)).to_have_count(0)

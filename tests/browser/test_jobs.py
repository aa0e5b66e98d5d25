"""A job on the page: pushed, found, viewed and acted on; and lists of jobs."""

import json
import re
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client, Job
from tests.browser.conftest import (
    IN_BOTH,
    ON_PHONE,
    ONE_LOOK,
    Admin,
    bury,
    holding,
    let_go,
    second_click,
)
from tests.browser.looks import PHONE
from tests.browser.test_selection import tick


def test_a_job_is_pushed_by_the_form_and_deleted(admin: Admin, queue: Client, topic: str) -> None:
    page = admin.open("push")
    admin.field("Topic").fill(topic)
    admin.field("Delay").fill("2h")
    admin.field("Tags, one per line").fill("order:5\n vip, 7")
    admin.field("Group, such as a customer").fill(" customer-7")
    admin.field("Body").fill('{"order": 5}')
    admin.press("Push")
    page.locator("form p a").click()
    expect(page.locator("dl")).to_contain_text(topic)
    expect(page.locator("pre")).to_have_text('{\n  "order": 5\n}')
    job_id = page.locator("h1").inner_text()
    details = queue.get(job_id)
    assert details
    assert (details.tags, details.group) == (("order:5", "vip, 7"), "customer-7")
    assert details.state == "delayed"
    # at once: a page that is hidden does not refresh itself
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    admin.confirm("Delete")
    expect(page.locator(".empty")).to_contain_text(job_id)
    assert queue.get(job_id) is None


def test_a_reserved_job_has_a_bar_that_says_how_far_it_is(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, retry=["1h"])
    job = queue.pop(topic, wait=5)
    assert job
    queue.touch(job, progress=40, message="page 4 of 10")
    page = admin.open(f"job/{topic}")
    bar = page.locator("dd progress")
    expect(bar).to_have_js_property("value", 40)
    expect(page.locator("dd .progress")).to_contain_text("40 % · page 4 of 10")
    queue.touch(job, message="<b>page 5</b>")
    expect(page.locator("dd .progress")).to_contain_text("40 % · <b>page 5</b>")
    page = admin.open(f"topic/{topic}")
    states = page.locator(".card .choices", has_text=admin.text("reserved"))
    states.get_by_role("button", name=admin.text("reserved")).click()
    expect(page.locator("td .progress")).to_contain_text("40 % · <b>page 5</b>")
    queue.release(job)
    admin.open(f"job/{topic}")
    expect(page.locator("dd .progress")).to_contain_text("40 %")


@ONE_LOOK
def test_a_call_is_pushed_as_it_was_typed(admin: Admin, topic: str) -> None:
    """This server may not call that host, and says so."""
    page = admin.open("push")
    admin.field("Topic").fill(topic)
    admin.field("URL that the server calls when the job is due (no worker gets the job)").fill(
        "http://a.b/"
    )
    admin.field("Headers of the call, one per line (Name: value)").fill("X-A: b:c\n\nX-D: e")
    with page.expect_request("**/push") as sent:
        admin.press("Push")
    call = (sent.value.post_data_json or {})["call"]
    assert call == {"url": "http://a.b/", "headers": {"X-A": "b:c", "X-D": "e"}}
    expect(page.get_by_role("alert")).to_contain_text("call_allow")


@ONE_LOOK
@pytest.mark.parametrize("form", ["clone", "edit"])
def test_a_form_waits_for_a_store_that_is_away_and_names_a_job_that_is_not_there(
    admin: Admin, queue: Client, topic: str, form: str
) -> None:
    queue.push(topic, topic, id=topic, delay=60)
    page = admin.page
    message = "the store is unavailable"
    away = {"code": 6, "message": message, "data": None}
    page.route("**/get", lambda route: route.fulfill(status=503, json=away))
    admin.go(f"{form}/{topic}")
    expect(page.get_by_role("alert")).to_have_text(message)
    page.unroute("**/get")
    expect(admin.field("Body")).to_have_value(topic)
    admin.go(f"{form}/{topic}-else")
    expect(page.locator("main .empty")).to_contain_text(f"{topic}-else")


@ONE_LOOK
def test_saying_no_changes_nothing(admin: Admin, queue: Client, topic: str) -> None:
    job_id = queue.push(topic, delay=60)
    page = admin.open(f"job/{job_id}")
    admin.press("Delete")
    admin.press("Cancel")
    page.keyboard.press("Tab")
    assert queue.get(job_id) is not None


@ONE_LOOK
def test_a_double_click_and_enter_held_down_push_one_job_and_agree_to_nothing(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("push")
    admin.field("Topic").fill(topic)
    admin.press("Push")
    page.locator("form p a").wait_for()
    second_click(page)
    page.locator("form p a").click()
    admin.button("Kick").hover()
    second_click(page)
    admin.press("Delete")
    admin.button("Delete", page.locator("dialog")).hover()
    second_click(page)
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    admin.button("Delete").focus()
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")  # as held down
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.up("Enter")
    page.keyboard.press("Escape")
    admin.open(f"topic/{topic}")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert queue.topics(topic)[0].delayed == 1


@ON_PHONE
def test_what_the_server_refuses_is_shown_in_words(admin: Admin, topic: str) -> None:
    page = admin.open("push")
    alerts = page.get_by_role("alert")
    admin.field("Topic").fill("a,b")
    admin.press("Push")
    comma = {"en": "comma", "zh": "逗号"}[admin.look.language]  # the server's own word
    expect(alerts).to_contain_text(comma)
    admin.field("Topic").fill(topic)
    admin.field("Delay").fill("soon")
    admin.press("Push")
    wrong = admin.text("“soon” is not a duration; write 90s, 10m, 2h or 1d")
    expect(alerts.last).to_have_text(wrong)
    alerts.last.click()  # it may lie over a button
    expect(alerts).to_contain_text(comma)
    admin.field("Delay").fill("1h")
    admin.press("Push")
    expect(alerts).to_have_count(0)


def test_a_reserved_job_shows_its_history_and_is_released(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, retry=["1s", "1h"], retain=60)
    job = queue.pop(topic, wait=5)
    assert job
    page = admin.open(f"job/{topic}")
    timeline = page.locator(".timeline")
    expect(timeline).to_contain_text(admin.text("attempt 1 runs"))
    admin.press("Extend")
    admin.confirm("Release")
    expect(timeline).to_contain_text(admin.pattern("attempt 1 failed after {1}"))
    again = queue.pop(topic, wait=5)
    assert again
    queue.finish(again)
    expect(page.locator(".timeline li.good b")).to_have_text(admin.text("finished"))


@ON_PHONE
def test_jobs_are_found_by_id_by_parts_of_id_topic_and_body_and_by_tag(
    admin: Admin, queue: Client, topic: str
) -> None:
    job_id = queue.push(topic, '{"name": "排队"}', delay=60, tags=[topic])
    queue.push(topic, '{"name": "other"}', delay=60)
    page = admin.open("")
    search = admin.field("Id, tag:… ( / )")
    search.fill(job_id)
    search.press("Enter")
    expect(page.locator("h1")).to_have_text(job_id)
    search.fill(job_id[3:20])
    search.press("Enter")
    expect(page.locator("tbody tr")).to_have_text(re.compile(job_id))
    search.fill(topic[3:])
    search.press("Enter")
    expect(page.locator("h1")).to_have_text(admin.text(f"Results for “{topic[3:]}”"))
    page.get_by_role("link", name=topic).click()
    expect(search).to_have_value("")
    text = admin.field("Text in bodies")
    text.fill('"name": "排队')
    text.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_have_text(re.compile(job_id))
    expect(admin.said("All {0} jobs searched.")).to_be_visible()
    search.fill(f"tag:{topic}")
    search.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    admin.confirm("Cancel all")
    expect(admin.said("Done: 1 job.")).to_be_visible()
    assert queue.get(job_id) is None


def test_a_search_says_what_it_searched_and_offers_the_bodies(
    admin: Admin, queue: Client, topic: str
) -> None:
    secret = f"needle-{topic[::-1]}"
    for number, place in enumerate((topic, f"{topic}-b", topic)):
        queue.push(place, f'"{secret}"', id=f"{topic}:{number}", delay=900 - 60 * number)
    page = admin.open(f"find/{secret}")
    expect(page.locator(".empty")).to_have_text(admin.text(f"No id contains “{secret}”."))
    expect(admin.said("Bodies were not searched.")).to_be_visible()
    cost = (
        "This reads every job, {0} or more, in calls of 10,000 jobs or 5 MiB. "
        "During each call, the store pauses for 2 to 5 ms at a time."
    )
    expect(admin.said(cost)).to_be_visible()
    admin.link("Search the bodies of all topics").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_text([re.compile(f"{topic}:{number}") for number in (2, 1, 0)])
    page.locator("thead").get_by_role("button", name=admin.text("Id"), exact=True).click()
    expect(rows.first).to_contain_text(f"{topic}:0")
    rows.first.get_by_role("checkbox").check()
    admin.confirm("Kick")
    expect(admin.said("Done: 1 job.")).to_be_visible()
    expect(rows.first.locator(".state")).to_have_text(admin.text("ready"))
    admin.press("Select all 3")
    expect(admin.said("3 selected")).to_be_visible()


@IN_BOTH
def test_a_search_that_is_refused_keeps_its_form(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, id=topic, delay=60)
    page = admin.page
    admin.go(f"find/{quote(json.dumps({'id': topic, 'start': 2e9, 'end': 1e9}))}")
    expect(page.get_by_role("alert")).to_be_visible()
    if page.locator("details:not([open])").count():
        page.locator("summary").click()
    end = page.locator("form [name=end]")
    expect(end).to_have_value(re.compile("2001-09-"))
    end.fill("")
    page.locator("form [name=start]").fill("")
    admin.press("Search")
    expect(page.locator("tbody tr")).to_have_count(1)


@ONE_LOOK
def test_enter_that_chooses_a_word_of_an_input_method_is_no_search(
    admin: Admin, topic: str
) -> None:
    page = admin.open(f"topic/{topic}")
    page.get_by_label("Text in bodies").focus()
    keys = page.context.new_cdp_session(page)
    keys.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    enter = {"type": "rawKeyDown", "key": "Enter", "windowsVirtualKeyCode": 229}
    keys.send("Input.dispatchKeyEvent", enter)
    keys.send("Input.insertText", {"text": "你"})
    keys.send("Input.dispatchKeyEvent", enter)  # Safari tells of it after the text
    page.keyboard.insert_text("好")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("“你好”")


@ONE_LOOK
def test_a_search_in_a_tab_in_the_background_is_done(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=f"{topic}-1", delay=60)
    page = admin.open("")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    admin.go(f"find/{topic}-")
    expect(page.locator("tbody tr")).to_have_count(1)


@ONE_LOOK
def test_what_was_found_is_acted_on_while_the_search_goes_on(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, delay=900)
    page = admin.open("")

    def answer(held: Route) -> None:
        looked = int(json.loads(held.request.post_data or "")["cursor"] or 0)
        job = {"id": topic, "topic": topic, "state": "delayed", "due": 1.9e9}
        found = {"jobs": [job][looked:], "looked": 10_000, "cursor": str(looked + 1)}
        held.fulfill(json={"code": 0, "message": "ok", "data": found})

    with holding(page, "find") as next_one:
        admin.go(f"find/{topic}")
        for _ in range(20):
            answer(next_one())
        admin.press("Continue")
        held = next_one()
        tick(page, 0)
        admin.confirm("Kick")
        expect(page.locator("tbody .state")).to_have_text("ready")
        answer(held)
        expect(admin.said("210,000 jobs searched; there are more.")).to_be_visible()
        next_one().fulfill(status=503, json={"code": 6, "message": "away", "data": None})
        expect(page.get_by_role("alert")).to_have_text("away")
        admin.press("Continue")
        answer(next_one())
        expect(admin.said("220,000 jobs searched; there are more.")).to_be_visible()
    expect(page.locator("tbody .state")).to_have_text("ready")


@ONE_LOOK
def test_the_same_search_again_searches_again(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, id=f"{topic}-1", delay=60)
    page = admin.open("")
    search = admin.field("Id, tag:… ( / )")
    rows = page.locator("tbody tr")
    for count in (1, 2):
        search.fill(f"topic:{topic} id:{topic}")
        search.press("Enter")
        expect(rows).to_have_count(count)
        queue.push(topic, id=f"{topic}-{count + 1}", delay=60)
    admin.press("Search", page.locator("details form"))
    expect(rows).to_have_count(3)


@ONE_LOOK
def test_a_search_leads_nowhere_once_the_user_is_elsewhere(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, delay=60)
    page = admin.open("")
    with holding(page, "get") as next_one:
        search = admin.field("Id, tag:… ( / )")
        search.fill(topic)
        search.press("Enter")
        held = next_one()
        page.locator("nav a", has_text="Push a job").click()
        admin.field("Topic").fill("half a form")
        let_go(page, held)
    expect(admin.field("Topic")).to_have_value("half a form")


@ONE_LOOK
def test_a_copy_has_what_the_job_had(admin: Admin, queue: Client, topic: str) -> None:
    body = "a;b\r\n1;2\r\n"
    queue.push(topic, body, id=topic, tags=["x,y"], expire=3600, retry=["2h"])
    job = queue.pop(topic, wait=5)
    assert job
    queue.release(job)  # its due time is that of the retry, and later than its expiry
    page = admin.open(f"clone/{topic}")
    expect(page.locator("[name=expire]")).to_have_value("1h")
    admin.press("Push")
    copy = queue.get(page.locator("form p a").inner_text())
    assert copy
    assert (copy.body, copy.tags) == (body, ("x,y",))


def test_a_body_is_laid_out_with_its_numbers_as_they_are(
    admin: Admin, queue: Client, topic: str
) -> None:
    body = '{"id":12345678901234567890,"price":1.10,"text":"a\\"{[,:","none":{},"list":[1,[]]}'
    queue.push(topic, body, id=topic, delay=60)
    page = admin.open(f"job/{topic}")
    lines = ["{", '  "id": 12345678901234567890,', '  "price": 1.10,', '  "text": "a\\"{[,:",']
    lines += ['  "none": {},', '  "list": [', "    1,", "    []", "  ]", "}"]
    expect(page.locator("pre")).to_have_text("\n".join(lines))
    deep = "[" * 20_000 + "]" * 20_000
    queue.push(topic, deep, id=f"{topic}-deep", delay=60)
    admin.open(f"job/{topic}-deep")
    expect(page.locator("pre")).to_have_text(deep)
    page.emulate_media(media="print")  # on paper, all of it
    assert page.locator("pre").evaluate(
        "({scrollHeight, clientHeight}) => scrollHeight === clientHeight"
    )
    page.emulate_media(media="screen")


@IN_BOTH
def test_a_long_list_is_read_page_by_page(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, delay=60 + n) for n in range(120)])
    page = admin.open(f"topic/{topic}")
    rows, more = page.locator("tbody tr"), admin.button("Show more")
    step = 25 if admin.look.width == PHONE.width else 50
    for shown in range(step, 120, step):
        expect(rows).to_have_count(shown)
        more.click()
    expect(rows).to_have_count(120)
    expect(more).to_have_count(0)


@ONE_LOOK
def test_a_search_again_keeps_the_times_that_the_address_has_more_exactly_than_the_form(
    admin: Admin, topic: str
) -> None:
    wanted = {"topic": topic, "start": 1824944400.25, "end": 1824948000.999}
    page = admin.open(f"find/{quote(json.dumps(wanted))}")
    form = page.locator("details form")
    form.locator("[name=group]").fill("vip")
    admin.press("Search", form)
    page.wait_for_url("**vip**")
    assert json.loads(unquote(page.url).partition("#/find/")[2]) == wanted | {"group": "vip"}


def test_a_search_has_filters_as_words_and_as_a_form(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 2, message="attempt 17 timed out")
    queue.push(topic, delay=60, tags=["vip"])
    page = admin.open("")
    expect(page.locator(".tile").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(f'topic:{topic} reason:"17 timed out"')
    page.keyboard.press("Enter")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    form = page.locator("details form")
    if page.locator("details:not([open])").count():  # on a phone
        page.locator("details summary").click()
    expect(form.get_by_label(admin.text("Text in the reason of a failure"))).to_have_value(
        "17 timed out"
    )
    form.locator("[name=message]").fill("")
    form.locator("[name=start]").fill("2026-02-30")
    admin.press("Search", form)
    expect(page.get_by_role("alert")).to_contain_text("2026-02-30")
    form.locator("[name=start]").fill("2020-01-01")
    form.locator("[name=tag]").fill("vip")
    form.locator("[name=state]").select_option("delayed")
    admin.press("Search", form)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(admin.text("delayed"))
    tick(page, 0)
    admin.confirm("Delete")
    expect(rows).to_have_count(0)
    assert queue.topics(topic)[0].delayed == 0

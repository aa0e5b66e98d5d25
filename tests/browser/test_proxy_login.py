"""The page, for a user whom a proxy has logged in: the tests' routes are the proxy."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import ONE_LOOK, Admin
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer


@pytest.fixture(scope="module")
def behind_a_proxy(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(
        redis_server,
        proxy_user_header="Remote-User",
        proxy_roles_header="Remote-Groups",
        proxy_roles="view:*, admin:ops",
        proxy_allow=LOOPBACK,
    )


@pytest.fixture
def admin(visit: Callable[[QueueServer], Admin], behind_a_proxy: QueueServer) -> Iterator[Admin]:
    admin = visit(behind_a_proxy)
    yield admin
    admin.page.unroute_all()


def logged_in(admin: Admin, user: str, groups: str) -> None:
    """From now on, each request has the headers of a proxy."""
    told = {"remote-user": user, "remote-groups": groups}

    def pass_on(route: Route) -> None:
        route.continue_(headers={**route.request.headers, **told})

    admin.page.unroute_all()
    admin.page.route("**/*", pass_on)


def test_who_is_logged_in_is_shown_and_not_asked_for_a_token(admin: Admin) -> None:
    logged_in(admin, "alice@example.com", "staff, ops")
    page = admin.open("")
    expect(page.locator("#tools .user")).to_have_text("alice@example.com")
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator("dialog")).to_be_hidden()
    expect(admin.button("Sign out")).to_have_count(0)  # that is the proxy's
    expect(page.locator("nav a")).to_have_count(9)


@ONE_LOOK
def test_a_user_is_offered_what_the_groups_allow(admin: Admin) -> None:
    logged_in(admin, "bob", "staff")
    page = admin.open("")
    expect(page.locator("#tools .user")).to_have_text("bob")
    expect(page.locator("nav a")).to_have_count(8)  # all except the form that pushes


@ONE_LOOK
@pytest.mark.parametrize("ends", ["with a redirect", "with a page", "with a form"])
def test_the_end_of_a_login_is_told(admin: Admin, ends: str) -> None:
    def refuse(route: Route) -> None:
        if ends == "with a redirect":
            route.fulfill(status=302, headers={"Location": "/elsewhere"})
        elif ends == "with a form" and route.request.headers["accept"] != "application/json":
            route.fulfill(status=403, content_type="text/html", body="<form>")
        else:
            route.fulfill(status=401, content_type="text/html", body="<h1>401</h1>")

    logged_in(admin, "alice", "ops")
    page = admin.open("")
    expect(page.locator(".tile").first).to_be_visible()
    page.unroute_all()
    page.route(lambda url: "/admin" not in url, refuse)
    words = (
        "Your login has ended. Reload the page, or log in in another tab, "
        "so that what you have typed here stays."
    )
    expect(admin.said(words).first).to_be_visible()
    admin.complaints.clear()  # the browser notes each 401


@ONE_LOOK
def test_the_page_sends_the_cookies_that_the_proxy_knows_its_users_by(
    admin: Admin, behind_a_proxy: QueueServer
) -> None:
    page = admin.page
    page.context.add_cookies([{"name": "session", "value": "1", "url": behind_a_proxy.url}])
    logged_in(admin, "alice", "ops")
    with page.expect_request("**/stats") as asked:
        admin.open("")
    assert asked.value.all_headers().get("cookie") == "session=1"
    page.context.clear_cookies()

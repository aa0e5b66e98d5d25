"""Login by the proxy: who is who, and who only says so."""

from pathlib import Path
from typing import Any, Final

import pytest

from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.reloaded import changed_to
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import Role
from delayqueue.errors import Forbidden, QueueError, Unauthorized
from delayqueue.web.auth import Authenticator
from delayqueue.web.http import HttpRequest
from delayqueue.web.proxy_login import MAX_NAME_CHARS, ProxyLogins, User, proxy_warnings

TOKEN: Final = "token-0123456789"
PROXY: Final = "10.1.2.3"
VIEWERS: Final = frozenset({Role.VIEW})
PRODUCERS: Final = frozenset({Role.PRODUCE})
LOGINS: Final = """
proxy_user_header = Remote-User
proxy_roles_header = Remote-Groups
proxy_allow = 10.1.2.0/24, fd00::7
"""
MAPPED: Final = (
    f"{LOGINS}proxy_roles = admin:dq admins, produce:dq admins, view:*, call:role:caller\n"
)


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "dq.conf"


def read(conf: Path, text: str) -> Config:
    conf.write_text(text, encoding="utf-8")
    return load(conf, {})


def guard_of(config: Config) -> Authenticator:
    guard = Authenticator()
    guard.use(config.auth_tokens, config.token_rate, ProxyLogins.of(config))
    return guard


def asked(
    user: str | None = "alice",
    groups: str | None = None,
    peer: str | None = PROXY,
    **more: Any,
) -> HttpRequest:
    headers = {"remote-user": user, "remote-groups": groups, **more.pop("headers", {})}
    sent = {name: value for name, value in headers.items() if value is not None}
    return HttpRequest("POST", "/topics", sent, peer, **more)


GRANTED: Final = [
    (LOGINS, "admin", "admin", "a role of ours"),
    (LOGINS, " staff,view , consume,", "consume+view", "others are groups for other programs"),
    (LOGINS, "staff|view|produce", "produce+view", "as authentik separates them"),
    (MAPPED, "dq admins", "admin+produce+view", "several entries for a group"),
    (MAPPED, None, "view", "whoever is logged in"),
    (MAPPED, "role:caller", "call+view", "a group with a colon"),
    (MAPPED, "admin", "view", "a mapping takes the place of the roles' own names"),
    (MAPPED, "DQ admins", "view", "a group is compared exactly"),
]


@pytest.mark.parametrize(("text", "groups", "roles", "_why"), GRANTED)
def test_groups_give_roles(
    conf: Path, text: str, groups: str | None, roles: str, _why: str
) -> None:
    guard = guard_of(read(conf, text))
    who = asked(groups=groups)
    assert "+".join(sorted(guard.access(who).roles)) == roles
    assert guard.access(who).name == "alice"
    assert guard.name_of(who) == f"{roles} user alice"


ADDRESSES: Final = [
    ("10.1.2.255", True),
    ("::ffff:10.1.2.3", True),
    ("fd00::7", True),
    ("10.1.3.0", False),
    ("127.0.0.1", False),
    ("fd00::8", False),
    ("fe80::1%eth0", False),
    (None, False),
]


@pytest.mark.parametrize(("peer", "is_proxy"), ADDRESSES)
@pytest.mark.parametrize("header", ["remote-user", "remote-groups"])
def test_only_the_proxy_says_who_somebody_is(
    conf: Path, peer: str | None, is_proxy: bool, header: str
) -> None:
    """Others are refused: even with a token, and whatever they say of the address that they come from."""
    guard = guard_of(read(conf, f"{LOGINS}auth_tokens = admin:{TOKEN}"))
    headers = {"remote-user": "alice", "remote-groups": "admin"}
    if not is_proxy:
        headers = {header: headers[header], "authorization": f"Bearer {TOKEN}"}
        headers |= {"x-forwarded-for": PROXY, "x-real-ip": PROXY, "forwarded": f"for={PROXY}"}
    request = HttpRequest("POST", "/topics", headers, peer)
    if is_proxy:
        assert guard.admit(request, VIEWERS).allows("t")
    else:
        with pytest.raises(Forbidden, match="which is not in proxy_allow") as refused:
            guard.admit(request, VIEWERS)
        assert "proxy_allow" in refused.value.text.zh
        assert header in refused.value.text.zh.lower()


DOUBTFUL: Final[list[tuple[HttpRequest, str]]] = [
    (asked(""), "Remote-User: empty"),
    (asked("  "), "Remote-User: empty"),
    (asked("x" * (MAX_NAME_CHARS + 1)), "Remote-User: longer than 256 characters"),
    (asked("al\udce4ice"), "Remote-User: not printable UTF-8"),
    (asked("al\u202eice"), "Remote-User: not printable UTF-8"),
    (asked("al\tice"), "Remote-User: not printable UTF-8"),
    (asked(repeated=frozenset({"remote-user"})), "Remote-User: sent more than once"),
    (asked(groups="view", repeated=frozenset({"remote-groups"})), "Remote-Groups: sent more than once"),
    (asked(None, "view"), "Remote-Groups: sent without Remote-User"),
    (asked(groups="staff, d\u202eev"), r"user alice has no role here: .*Remote-Groups: 'staff, d\\u202eev'"),
    (asked(), "user alice has no role here: .*Remote-Groups: ''"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "says"), DOUBTFUL)
def test_what_the_proxy_says_in_doubt_is_refused(
    conf: Path, request_: HttpRequest, says: str
) -> None:
    guard = guard_of(read(conf, f"{LOGINS}auth_tokens = admin:{TOKEN}"))
    for refuses in (
        lambda: guard.admit(request_, VIEWERS),
        lambda: guard.check_again(request_, VIEWERS, ["t"]),
        lambda: guard.access(request_),
    ):
        with pytest.raises(Forbidden, match=says) as refused:
            refuses()
        assert refused.value.text.zh.isprintable()


def test_names_are_what_they_are(conf: Path) -> None:
    guard = guard_of(read(conf, LOGINS))
    for name in ("王小明", "Zoë O'Hara", "x" * MAX_NAME_CHARS, "alice@example.com", "%61"):
        assert guard.access(asked(name, "view")).name == name


def test_a_name_that_stands_for_a_group_is_not_divided(conf: Path) -> None:
    """Cloudflare tells addresses alone, and a user may have chosen what stands before the @."""
    by_name = "proxy_user_header = X-User\nproxy_roles_header = x-user\nproxy_allow = 10.1.2.3\n"
    guard = guard_of(read(conf, f"{by_name}proxy_roles = view:*, admin:alice@example.com"))
    for name, roles in (
        ("alice@example.com", {Role.ADMIN, Role.VIEW}),
        ('"x,alice@example.com,"@evil.example', {Role.VIEW}),
        ('"|alice@example.com|"@evil.example', {Role.VIEW}),
    ):
        request = HttpRequest("POST", "/topics", {"x-user": name}, PROXY)
        user = guard.access(request)
        assert user == User(name, frozenset(roles))


def test_who_is_refused_reads_that_it_is_about_a_user(conf: Path) -> None:
    guard = guard_of(read(conf, LOGINS))
    with pytest.raises(Forbidden, match="user alice has the roles view: they may not call this"):
        guard.admit(asked(groups="view"), PRODUCERS)
    with pytest.raises(Forbidden, match="call: user alice has no role call for topic t"):
        guard.check_caller(asked(groups="view"), "t")


def test_a_login_counts_before_a_token(conf: Path) -> None:
    """Proxies pass on the password of Basic, or a token of their own, in Authorization."""
    guard = guard_of(read(conf, f"{LOGINS}auth_tokens = produce:{TOKEN}"))
    for token in (TOKEN, "unknown"):
        both = asked(groups="view", headers={"authorization": f"Bearer {token}"})
        assert guard.access(both).roles == VIEWERS
    without = asked(None, headers={"authorization": f"Bearer {TOKEN}"})
    assert guard.access(without).roles == PRODUCERS


def test_whoever_neither_has_a_token_nor_is_logged_in_is_refused(conf: Path) -> None:
    """Also without any token in the settings: a proxy that forgets the header must let nobody in."""
    guard = guard_of(read(conf, LOGINS))
    assert guard.requires_auth
    for peer in (PROXY, "127.0.0.1"):
        with pytest.raises(Unauthorized, match="a login by the proxy") as refused:
            guard.admit(asked(None, peer=peer), VIEWERS)
        assert "Basic" in refused.value.headers["WWW-Authenticate"]
    with pytest.raises(Unauthorized) as refused:
        guard.admit(asked(None, headers={"x-admin-page": "yes"}), VIEWERS)
    # the browser must not ask for a password over the page's own question
    assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="delay-queue"'}


def test_without_the_setting_the_headers_mean_nothing() -> None:
    guard = guard_of(Config())
    assert not guard.requires_auth
    assert guard.admit(asked(groups="view"), PRODUCERS).allows("t")
    assert (guard.access(asked()).name, guard.name_of(asked())) == ("", "anybody")


def test_other_settings_take_the_place_of_the_former(conf: Path) -> None:
    guard = guard_of(read(conf, LOGINS))
    guard.use([], 0, ProxyLogins.of(read(conf, f"{LOGINS}proxy_roles = produce:staff")))
    assert guard.access(asked(groups="staff")).roles == PRODUCERS
    with pytest.raises(QueueError):
        guard.admit(asked(groups="view"), VIEWERS)
    guard.use([], 0, None)
    assert not guard.requires_auth


HALVES: Final = {
    "no proxy": (
        "proxy_user_header = X-User\nproxy_roles_header = X",
        "proxy_user_header: needs proxy_allow",
    ),
    "no user": ("proxy_allow = 10.0.0.1", "proxy_allow: needs proxy_user_header"),
    "roles of nobody": ("proxy_roles_header = X", "proxy_roles_header: needs proxy_user_header"),
    "groups of nobody": ("proxy_roles = view:*", "proxy_roles: needs proxy_user_header"),
    "no roles": (
        "proxy_user_header = X-User\nproxy_allow = 10.0.0.1\nproxy_roles = view:staff",
        "proxy_roles: needs proxy_roles_header, except for",
    ),
    "some roles": (
        "proxy_user_header = X-User\nproxy_allow = 10.0.0.1\nproxy_roles = view:*, admin:ops",
        "proxy_roles: needs proxy_roles_header, except for",
    ),
    "roles of nothing": (
        "proxy_user_header = X-User\nproxy_allow = 10.0.0.1",
        "proxy_user_header: needs proxy_roles_header, or proxy_roles = view:",
    ),
}


@pytest.mark.parametrize(("text", "says"), HALVES.values(), ids=HALVES.keys())
def test_half_of_the_settings_is_an_error(conf: Path, text: str, says: str) -> None:
    with pytest.raises(StartupError, match=says):
        ProxyLogins.of(read(conf, text))


WRONG: Final = [
    ("proxy_user_header = Remote User", "must be the name of a header such as Remote-User"),
    ("proxy_roles_header = a:", "must be the name of a header"),
    ("proxy_roles = staff", "must be ROLE:GROUP"),
    ("proxy_roles = root:staff", "must be ROLE:GROUP"),
    ("proxy_roles = view:", "must be ROLE:GROUP"),
    ("proxy_roles = ,", "there is nothing between its commas"),
    ("proxy_allow = proxy.example.com", "must be networks"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_wrong_value_is_an_error(conf: Path, text: str, says: str) -> None:
    with pytest.raises(StartupError, match=says):
        read(conf, text)


@pytest.mark.parametrize(
    ("allow", "warns"),
    [
        ("0.0.0.0/0", True),
        ("::/0", True),
        ("10.0.0.0/8", True),
        ("10.1.0.0/16", False),
        ("fd00::/48", True),
        ("fd00::/64", False),
        ("127.0.0.1, 203.0.113.7, ::1", False),
    ],
)
def test_so_many_addresses_that_strangers_are_among_them_are_warned_of(
    conf: Path, allow: str, warns: bool
) -> None:
    [*found] = proxy_warnings(read(conf, f"proxy_user_header = X-User\nproxy_allow = {allow}"))
    assert [f"proxy_allow = {allow}: " in each for each in found] == [True] * warns


def test_settings_are_shown_as_they_are_written(conf: Path) -> None:
    shown = read(conf, MAPPED).shown()
    assert shown["proxy_allow"] == "10.1.2.0/24, fd00::7/128"
    assert shown["proxy_roles"] == "admin:dq admins, produce:dq admins, view:*, call:role:caller"


def test_a_reload_may_change_logins_and_not_end_the_last_check(conf: Path) -> None:
    config = read(conf, LOGINS)
    found, left = changed_to(config, read(conf, f"{MAPPED}admin_title = x"))
    assert (found.proxy_roles, left) == (read(conf, MAPPED).proxy_roles, [])
    changed_to(config, read(conf, f"auth_tokens = admin:{TOKEN}"))
    with pytest.raises(StartupError, match="neither a token nor a login would be left; only a"):
        changed_to(config, read(conf, "admin_title = x"))

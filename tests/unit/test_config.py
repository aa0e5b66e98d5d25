"""What config files and variables mean, and the messages about invalid ones."""

import os
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config import values
from delayqueue.config.config import FILE_REDIS_HOST, OPTIONS, Config
from delayqueue.config.loading import load
from delayqueue.config.reloaded import changed_to
from delayqueue.config.sections import Sections
from delayqueue.config.startup import ConfigError, StartupError
from delayqueue.config.values import Address
from delayqueue.store.connect import where_is
from delayqueue.web.auth import all_grants, read_tokens
from delayqueue.web.tls import Certificate

SHIPPED: Final = Path(__file__).parents[2] / "delay-queue.conf"
REDIS: Final = Address("127.0.0.1", 6379)
SECRET: Final = f"whsec_{'A' * 32}"
OTHER_SECRET: Final = f"whsec_{'B' * 34}=="

# the original server's own file, its comments shortened and its lines uncommented
ORIGINAL: Final = """\
bind_address = 0.0.0.0:9278   ; http server监听地址
bucket_size = 3               ; bucket数量
bucket_name = dq_bucket_%d    ; bucket在redis中的键名, %d必须保留
queue_name = dq_queue_%s      ; ready queue在redis中的键名, %s必须保留
queue_block_timeout = 178     ; 单位秒, 必须小于redis.read_timeout
redis.host = 127.0.0.1:6379   ; redis连接地址
redis.db = 1                  ; 建议选择未被使用的数据库
redis.password =              ; redis密码, 无需密码留空
redis.max_idle = 10           ; redis连接池最大空闲连接数
redis.max_active = 0          ; redis连接池最大激活连接数, 0为不限制
redis.connect_timeout = 5000  ; redis连接超时时间, 单位毫秒
redis.read_timeout = 180000   ; redis读取超时时间, 单位毫秒
redis.write_timeout = 3000    ; redis写入超时时间, 单位毫秒
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "dq.conf"


def parsed(conf: Path, text: str, **environ: str) -> Config:
    conf.write_text(text, encoding="utf-8")
    return load(conf, environ)


def complaint(conf: Path | None, **environ: str) -> str:
    """The message about a config, with "FILE" for the path."""
    with pytest.raises(ConfigError) as caught:
        load(conf, environ)
    message = str(caught.value)
    assert message.isprintable(), "a message is one line"
    return message.replace(str(conf), "FILE")


def test_the_shipped_file_equals_the_defaults_and_names_every_key(tmp_path: Path) -> None:
    assert load(SHIPPED, {}) == Config(redis_host=REDIS, sections=Sections())
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    given = {line.split("=")[0].strip() for line in lines if line and not line.startswith(";")}
    assert given == set(OPTIONS)


def test_without_a_file_the_store_is_embedded() -> None:
    config = load(None, {})
    assert config == Config()
    assert config.embedded


def test_a_file_that_names_no_store_means_the_originals(conf: Path) -> None:
    config = parsed(conf, "bucket_size = 3\n")
    assert str(config.redis_host) == FILE_REDIS_HOST
    assert config.redis_db == 1
    assert not config.embedded


def test_the_originals_file_works_as_it_is(conf: Path) -> None:
    assert parsed(conf, ORIGINAL) == Config(
        bind_address=Address("0.0.0.0", 9278),
        bucket_size=3,
        queue_block_timeout_s=178,
        redis_host=REDIS,
        redis_read_timeout_ms=180_000,
        strict=False,
        require_delay=True,
        sections=Sections(),
    )


def test_a_file_that_does_not_say_strict_is_of_clients_of_the_original(conf: Path) -> None:
    assert load(None, {}).strict
    assert load(SHIPPED, {}).strict
    assert not parsed(conf, "bucket_size = 3\n").strict
    assert parsed(conf, "strict = yes\n").strict


def test_with_such_a_file_each_push_says_when_its_job_is_due(conf: Path) -> None:
    assert not load(None, {}).require_delay
    assert parsed(conf, "bucket_size = 3\n").require_delay
    assert not parsed(conf, "require_delay = no\n").require_delay
    for said in ("yes", "no"):
        assert not parsed(conf, f"strict = {said}\n").require_delay
        conf.write_text("bucket_size = 3\n", encoding="utf-8")
        assert not load(conf, {"DELAYQUEUE_STRICT": said}).require_delay
    assert parsed(conf, "", DELAYQUEUE_STRICT="yes").strict


def test_variables_win_over_the_file(conf: Path) -> None:
    config = parsed(conf, "redis.db = 2\nlanguage = en\n", DELAYQUEUE_REDIS_DB="3")
    assert (config.redis_db, config.language) == (3, "en")


def test_every_option_has_a_variable_and_a_field_named_after_it() -> None:
    names = [field.name for field in fields(Config) if "option" in field.metadata]
    for option, name in zip(OPTIONS.values(), names, strict=True):
        assert option.variable == f"DELAYQUEUE_{option.key.replace('.', '_').upper()}"
        unit = f"_{option.unit}" if option.unit else ""
        assert name == option.key.replace(".", "_") + unit


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("redis.password = a b", "a b"),
        ("redis.password: a=b", "a=b"),
        ("redis.password=a", "a"),
        ("  redis.password =\ta\t ", "a"),
        ("redis.password = a;b", "a"),  # as in the original
        ("redis.password = a #b", "a"),
        ('redis.password = "a;b" ; c', "a;b"),
        ("redis.password = `a#'b`", "a#'b"),
        ("redis.password = 'a\"b'", 'a"b'),
        ("redis.password = 100%d", "100%d"),
        ("redis.password = ;none", ""),
        ("redis.password = \u2028x", "x"),  # one line, whatever Python counts as a line break
        ("; redis.password = a\n# redis.password = b", ""),
        ("\ufeffredis.password = a", "a"),  # a byte order mark
        ("redis.password = a\r", "a"),
    ],
)
def test_lines_are_read_as_the_original_reads_them(conf: Path, line: str, value: str) -> None:
    assert parsed(conf, f"{line}\n").redis_password == value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("bind_address", ":9277", Address("", 9277)),
        ("bind_address", "[::1]:0", Address("::1", 0)),
        ("bind_address", "queue.example:80", Address("queue.example", 80)),
        ("redis.host", "embedded", None),
        ("redis.host", "redis", Address("redis", 6379)),
        ("redis.host", ":7000", Address("127.0.0.1", 7000)),
        ("redis.host", "[::1]:7000", Address("::1", 7000)),
        ("redis.url", "rediss://u:p@h:1/2", "rediss://u:p@h:1/2"),
        ("redis.url", "unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ("redis.read_timeout", "0", 0),
        ("protected_mode", "No", False),
        ("protected_mode", "on", True),
        ("log_level", "WARNING", "warning"),
        ("data_dir", "/srv/dq", Path("/srv/dq")),
        ("data_dir", "~/dq", Path.home() / "dq"),
        ("redis.db", "", 1),  # empty means the default
        ("max_body", "2097152", 2**21),
        ("call_secret", SECRET, ((None, SECRET),)),
        (
            "call_secret",
            f"a=b={SECRET}, 发票 = {OTHER_SECRET},{SECRET}",
            (("a=b", SECRET), ("发票", OTHER_SECRET), (None, SECRET)),
        ),
    ],
)
def test_values_are_understood(conf: Path, key: str, text: str, value: object) -> None:
    assert parsed(conf, f"{key} = {text}").value(key) == value
    assert load(None, {OPTIONS[key].variable: text}).value(key) == value


def test_one_worker_runs_on_each_core_that_the_process_may_use() -> None:
    usable = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(usable)})
        assert load(None, {"DELAYQUEUE_WORKERS": "auto"}).workers == 1
    finally:
        os.sched_setaffinity(0, usable)
    assert load(None, {"DELAYQUEUE_WORKERS": "auto"}).workers == len(usable)


@pytest.mark.parametrize("database", ["/prod", "/1/2", "/-1", "/1.5"])
def test_a_url_of_redis_names_its_database_by_a_number(database: str) -> None:
    """redis-py would take 0, 12, -1 and 0."""
    said = complaint(None, DELAYQUEUE_REDIS_URL=f"redis://h{database}")
    assert said.startswith("DELAYQUEUE_REDIS_URL: must be redis://")


@pytest.mark.parametrize("in_file", ["redis.url = redis://prod/5", "redis.sentinel = prod"])
def test_a_store_that_a_variable_names_is_the_only_one(conf: Path, in_file: str) -> None:
    config = parsed(conf, in_file, DELAYQUEUE_REDIS_HOST="stage:6379")
    assert where_is(config, None) == ("redis.host", "redis.host = stage:6379")
    assert parsed(conf, in_file, DELAYQUEUE_REDIS_HOST="embedded").embedded
    config = parsed(conf, in_file, DELAYQUEUE_REDIS_CLUSTER="stage")
    assert where_is(config, None) == ("redis.cluster", "redis.cluster = stage:6379")
    config = parsed(conf, in_file, DELAYQUEUE_REDIS_URL="redis://:s3@stage/2")
    assert where_is(config, None) == ("redis.url", "redis.url = redis://stage/2")


@pytest.mark.parametrize("name", ["DB", "USER", "PASSWORD"])
def test_a_variable_that_a_url_makes_idle_is_refused(conf: Path, name: str) -> None:
    variable, url = f"DELAYQUEUE_REDIS_{name}", "redis.url = redis://h/1"
    conf.write_text(url, encoding="utf-8")
    says = "says that; put it into the URL, or unset the variable"
    assert complaint(conf, **{variable: "7"}) == f"{variable}: FILE:1: redis.url {says}"
    settings = {variable: "7", "DELAYQUEUE_REDIS_URL": "redis://h/1"}
    assert complaint(None, **settings) == f"{variable}: DELAYQUEUE_REDIS_URL {says}"
    in_file = f"redis.{name.lower()} = 7"
    assert parsed(conf, f"{url}\n{in_file}").redis_url
    assert parsed(conf, in_file, DELAYQUEUE_REDIS_URL="redis://h/1").redis_url


def test_a_url_wins_over_the_embedded_store() -> None:
    assert not load(None, {"DELAYQUEUE_REDIS_URL": "redis://h"}).embedded


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\nredis.db = x", "FILE:3: redis.db = x: must be a whole number from 0 to 2147483647"),
        ("redis.db = -1", "FILE:1: redis.db = -1: must be a whole number from 0 to 2147483647"),
        ("redis.db = ٣", "FILE:1: redis.db = ٣: must be a whole number from 0 to 2147483647"),
        ("bucket_size = 0", "FILE:1: bucket_size = 0: must be a whole number from 1 to 1024"),
        (
            "bind_address = 9277",
            (
                "FILE:1: bind_address = 9277: "
                "must be HOST:PORT or [IPV6]:PORT with a port from 0 to 65535"
            ),
        ),
        ("redis.host = a:b", "FILE:1: redis.host = a:b: must be HOST:PORT or embedded"),
        ("bucket_name = dq", "FILE:1: bucket_name = dq: must contain %d once and no braces"),
        (
            "queue_name = {%s}",
            "FILE:1: queue_name = {%s}: must contain %s once and no braces",
        ),
        (
            "queue_name = %s",
            (
                "FILE:1: queue_name = %s: some topic's list would have the name of another key "
                "(job); let it begin with dq_queue_"
            ),
        ),
        ("scheduler = list", "FILE:1: scheduler = list: must be one of zset, wheel"),
        (
            "wheel_slots = 59",
            "FILE:1: wheel_slots = 59: must be a whole number from 60 to 36000",
        ),
        (
            "wheel_slots = 7000",
            (
                "FILE:1: wheel_slots = 7000: must divide an hour into whole milliseconds, "
                "as 3600, 7200 and 14400 do"
            ),
        ),
        (
            "auth_tokens = ,,",
            (
                "FILE:1: auth_tokens: there is nothing between its commas; "
                "fill it in, or leave it empty"
            ),
        ),
        ("protected_mode = maybe", "FILE:1: protected_mode = maybe: must be yes or no"),
        (
            "admin_title = Production, pink",
            (
                "FILE:1: admin_title = Production, pink: must be NAME or NAME, COLOUR with at most 64 characters, "
                "the COLOUR one of red orange green blue purple"
            ),
        ),
        ("language = fr", "FILE:1: language = fr: must be one of zh, en"),
        ("port = 1", "FILE:1: port: unknown key; did you mean bind_address?"),
        ("redis.dbb = 1", "FILE:1: redis.dbb: unknown key; did you mean redis.db?"),
        ("BUCKET_SIZE = 1", "FILE:1: BUCKET_SIZE: unknown key; did you mean bucket_size?"),
        ("zzz = 1", "FILE:1: zzz: unknown key; see delay-queue --help-settings"),
        ("z\x1b[2J = 1", r"FILE:1: 'z\x1b[2J': unknown key; see delay-queue --help-settings"),
        ("language = \x1b", r"FILE:1: language = '\x1b': must be one of zh, en"),
        ("redis.db", "FILE:1: redis.db: must be KEY = VALUE, or begin with ;"),
        ("= 1", "FILE:1: = 1: must be KEY = VALUE, or begin with ;"),
        (
            "redis.db = 1\nredis.db = 2",
            "FILE:1: redis.db: set again at FILE:2; keep one of them",
        ),
        (
            'language = "en',
            'FILE:1: language: the value must end with the quote it begins with: "',
        ),
        ("[extra]\nredis.db = 1", "FILE:1: [extra]: unknown section; remove it"),
    ],
)
def test_a_bad_file_is_named_with_line_key_and_fix(conf: Path, text: str, message: str) -> None:
    conf.write_text(text, encoding="utf-8")
    assert complaint(conf) == message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "DELAYQUEUE_REDIS_DB",
            "x\ny",
            r"DELAYQUEUE_REDIS_DB = 'x\ny': must be a whole number from 0 to 2147483647",
        ),
        (
            "DELAYQUEUE_BUCKET_NAME",  # it ended with a traceback
            "\udcff%d",
            "DELAYQUEUE_BUCKET_NAME: must be UTF-8",
        ),
        (
            "DELAYQUEUE_PORT",
            "80",
            "DELAYQUEUE_PORT: unknown variable; did you mean DELAYQUEUE_BIND_ADDRESS?",
        ),
        (
            "DELAYQUEUE_REDISHOST",
            "h",
            "DELAYQUEUE_REDISHOST: unknown variable; did you mean DELAYQUEUE_REDIS_HOST?",
        ),
        (
            "DELAYQUEUE_AUTH_TOKENS",
            "admin:secret",
            (
                "DELAYQUEUE_AUTH_TOKENS: must be ROLE:TOKEN or ROLE:TOKEN:TOPICS with the ROLE "
                "produce, consume, call, view or admin, a TOKEN of at least 16 letters, digits and . _ ~ + / = -, "
                "and a topic, or its beginning and *, as TOPICS"
            ),
        ),
        (
            "DELAYQUEUE_AUTH_TOKENS",
            " , ,",
            (
                "DELAYQUEUE_AUTH_TOKENS: there is nothing between its commas; "
                "fill it in, or leave it empty"
            ),
        ),
        (
            "DELAYQUEUE_REDIS_CLUSTER",
            ",",
            (
                "DELAYQUEUE_REDIS_CLUSTER = ,: there is nothing between its commas; "
                "fill it in, or leave it empty"
            ),
        ),
        (
            "DELAYQUEUE_REDIS_URL",
            "http://u:secret@h",
            (
                "DELAYQUEUE_REDIS_URL: must be redis://[USER:PASSWORD@]HOST:PORT/DB, "
                "rediss://... (TLS) or unix://PATH?db=DB"
            ),
        ),
    ],
)
def test_a_bad_variable_is_named(name: str, text: str, message: str) -> None:
    assert complaint(None, **{name: text}) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SECRET[:20], "must be whsec_ and then 24 to 64 bytes as base64"),
        (f"a={SECRET}, a={OTHER_SECRET}", "must have one secret for each topic, and one without"),
        (f"{SECRET}, {OTHER_SECRET}", "must have one secret for each topic, and one without"),
        (f"a*={SECRET}", "must be whsec_... or TOPIC=whsec_..., with commas between; no * in"),
        (f"={SECRET}", "must be whsec_... or TOPIC=whsec_..., with commas between"),
        (f"a {SECRET}", "must be whsec_... or TOPIC=whsec_..., with commas between"),
        ("a=hush", "must be whsec_... or TOPIC=whsec_..., with commas between"),
    ],
)
def test_a_bad_secret_of_calls_is_refused_and_not_shown(text: str, message: str) -> None:
    found = complaint(None, DELAYQUEUE_CALL_SECRET=text)
    assert found.startswith(f"DELAYQUEUE_CALL_SECRET: {message}")


def test_a_file_that_is_not_there_is_named(conf: Path) -> None:
    assert complaint(conf) == "FILE: No such file or directory: choose a readable file"


NEEDS_TLS: Final = "needs TLS; set redis.tls = yes, or use rediss:// in redis.url"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("redis.tls_ca = x", f"FILE:1: redis.tls_ca: {NEEDS_TLS}"),
        ("redis.tls = no\nredis.tls_cert = x", f"FILE:2: redis.tls_cert: {NEEDS_TLS}"),
        ("redis.url = redis://h\nredis.tls_key = x", f"FILE:2: redis.tls_key: {NEEDS_TLS}"),
        (
            "redis.tls = yes\nredis.url = redis://h",
            "FILE:1: redis.tls: FILE:2: redis.url connects without TLS; let the URL begin with rediss://",
        ),
        (
            "redis.url = unix:///sock\nredis.tls = on\nredis.tls_ca = x",
            "FILE:2: redis.tls: FILE:1: redis.url connects without TLS; let the URL begin with rediss://",
        ),
        (
            "redis.host = embedded\nredis.tls = yes",
            "FILE:2: redis.tls: the embedded store connects without TLS; name another one, or set redis.tls = no",
        ),
    ],
)
def test_a_connection_that_should_be_encrypted_and_would_not_be_is_refused(
    conf: Path, text: str, message: str
) -> None:
    conf.write_text(text, encoding="utf-8")
    assert complaint(conf) == message


def test_a_url_says_by_itself_whether_it_is_encrypted(conf: Path) -> None:
    ways = "redis.tls = no", "redis.tls = yes", "redis.tls ="
    for way in ways:
        assert parsed(conf, f"{way}\nredis.url = REDISS://h\nredis.tls_ca = x").redis_url
    assert parsed(conf, "redis.tls = no\nredis.url = redis://h").redis_url


@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/urandom"])
def test_a_file_without_an_end_is_refused(endless: str) -> None:
    assert "File too large, has more than 4194304 bytes" in complaint(Path(endless))
    with pytest.raises(StartupError, match="File too large"):
        read_tokens(Path(endless))
    with pytest.raises(StartupError, match="is not a regular file"):
        Certificate.of(Config(tls_cert=Path(endless)))


def test_tokens_of_the_settings_and_of_a_file_that_begins_with_a_mark_are_accepted(
    conf: Path, tmp_path: Path
) -> None:
    one, other, file = f"admin:{'a' * 20}", f"admin:{'b' * 20}", tmp_path / "tokens"
    file.write_text(f"{other}\n", encoding="utf-8-sig")
    config = parsed(conf, f"auth_tokens = {one}\nauth_tokens_file = {file}")
    assert [each.token for each in all_grants(config)] == ["a" * 20, "b" * 20]


def test_a_file_of_tokens_without_any_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# none\n\n", encoding="utf-8")
    with pytest.raises(StartupError, match="has no token"):
        read_tokens(file)


@pytest.mark.parametrize(
    "line",
    ["x" + " " * 2_000_000, "bucket_size" + " " * 2_000_000 + "= 3", "k" * 2_000_000 + " = 3"],
    ids=["blanks", "blanks before the sign", "a long key"],
)
def test_a_long_line_takes_no_long_time(conf: Path, line: str) -> None:
    """It took hours."""
    conf.write_text(line, encoding="utf-8")
    with suppress(ConfigError):
        load(conf, {})


NOWHERE: Final = {
    "~nosuchuser/x": "must be a path; there is no such user",
    "a\0b": "must be a path, without zero bytes",
}


@pytest.mark.parametrize(("path", "says"), NOWHERE.items())
@pytest.mark.parametrize("key", ["auth_tokens_file", "tls_cert", "data_dir", "redis.tls_ca"])
def test_a_path_that_cannot_be_is_refused(conf: Path, key: str, path: str, says: str) -> None:
    conf.write_text(f"redis.tls = yes\n{key} = {path}\n", encoding="utf-8")
    assert says in complaint(conf)


@pytest.mark.parametrize("host", ["a\0b", "x" * 64, "a..b"])
@pytest.mark.parametrize(
    "key", ["bind_address", "beanstalk_address", "redis.host", "redis.cluster"]
)
def test_a_host_that_cannot_be_looked_up_is_refused(conf: Path, key: str, host: str) -> None:
    conf.write_text(f"{key} = {host}:1\n", encoding="utf-8")
    assert "must be HOST:PORT" in complaint(conf)


OPEN_DOORS: Final = {
    "the last token": ("auth_tokens = admin:{token}", "strict = yes", "no token would be left"),
    "the file of tokens": ("auth_tokens_file = x", "strict = yes", "no token would be left"),
    "TLS": ("tls_cert = x", "strict = yes", "TLS would end"),
    "protected mode": ("strict = yes", "protected_mode = no", "protected_mode would end"),
    "an empty file": ("strict = yes", "; nothing", "is empty"),
    "sections that are gone": ("[limit t]\nrate = 5", "", "is empty"),
}


@pytest.mark.parametrize(("was", "now", "says"), OPEN_DOORS.values(), ids=OPEN_DOORS.keys())
def test_a_reload_takes_no_protection_away(conf: Path, was: str, now: str, says: str) -> None:
    config = parsed(conf, was.format(token="t" * 16))
    with pytest.raises(StartupError, match=f"{says}; only a restart does that"):
        changed_to(config, parsed(conf, now))


def test_a_reload_may_add_protection_and_replace_it(conf: Path) -> None:
    config = parsed(conf, "protected_mode = no\nauth_tokens_file = old")
    found, left = changed_to(config, parsed(conf, "auth_tokens = admin:0123456789abcdef"))
    assert (found.protected_mode, found.has_tokens, left) == (True, True, [])


def test_a_file_in_another_encoding_is_named_with_its_line(conf: Path) -> None:
    conf.write_bytes("redis.db = 1\n; 中文\n".encode("gb18030"))
    assert complaint(conf) == "FILE:2: is not UTF-8: save the file as UTF-8"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DELAYQUEUE_SERVICE_HOST", "10.0.0.1"),
        ("DELAYQUEUE_SERVICE_PORT_HTTP", "9277"),
        ("DELAYQUEUE_PORT", "tcp://10.0.0.1:9277"),
        ("DELAYQUEUE_PORT_9277_TCP_ADDR", "10.0.0.1"),
    ],
)
def test_a_neighbour_service_called_delayqueue_is_no_setting(name: str, text: str) -> None:
    assert load(None, {name: text}) == Config()


def test_a_wish_for_a_port_is_not_taken_for_a_neighbour_service() -> None:
    assert complaint(None, DELAYQUEUE_PORT="9277").startswith("DELAYQUEUE_PORT: unknown variable")


def test_secrets_do_not_show() -> None:
    config = load(
        None,
        {
            "DELAYQUEUE_REDIS_PASSWORD": "s3",
            "DELAYQUEUE_AUTH_TOKENS": "admin:s3s3s3s3s3s3s3s3, produce:s3s3s3s3s3s3s3s3:a*,",
            "DELAYQUEUE_CALL_SECRET": f"topic=whsec_{'s3s3' * 8}",
        },
    )
    assert config.redis_password == "s3"
    assert "s3" not in repr(load(None, {"DELAYQUEUE_REDIS_URL": "redis://:s3@h"}))
    assert [grant.topics for grant in config.auth_tokens] == ["*", "a*"]
    assert "s3" not in repr(config)
    assert config.shown()["call_secret"] == "***"


def test_paths_that_are_not_utf_8_can_be_shown() -> None:
    folder = os.fsdecode("/配置".encode("gbk"))
    config = Config(data_dir=Path(folder), places={"data_dir": f"{folder}/dq.conf:3"})
    for shown in (config.shown()["data_dir"], config.set_in()["data_dir"]):
        assert "/\ufffd" in shown
        shown.encode()


@pytest.mark.parametrize(
    ("name", "meets"),
    [
        ("%s", "any key"),
        ("%s:x", "delay:x of topic x"),
        ("tag:%s", "the jobs of a tag"),
        ("reserved:%s", "the reserved jobs of a topic"),
        ("reserved:a%s", "those of a topic that begins with a"),
        ("ta%s", "tag:x and taken"),
        ("t%srs", "timers"),
        ("timer%s", "timers"),
        ("%stimes", "schedule_times"),
    ],
)
def test_a_queue_name_that_can_meet_another_key_is_refused(name: str, meets: str) -> None:
    with pytest.raises(ValueError, match="another key"):
        values.queue_name(name)
    assert meets


@pytest.mark.parametrize("name", ["dq_queue_%s", "q%s", "timers%s", "timers:%s", "x_%s_ready"])
def test_a_queue_name_that_meets_no_other_key_is_taken(name: str) -> None:
    assert values.queue_name(name) == name

"""Every option, once: name, default, unit, meaning, parser."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Final

from delayqueue.config import values
from delayqueue.config.option import Option, option
from delayqueue.config.sections import Sections
from delayqueue.config.values import EMBEDDED, Address
from delayqueue.domain.access import Grant, GroupRole
from delayqueue.domain.subscriber import MAX_CONCURRENCY
from delayqueue.domain.text import readable
from delayqueue.log import LEVELS

# the default of `redis.host` in a config file: the original's
FILE_REDIS_HOST: Final = "127.0.0.1:6379"
# that of `strict`: clients of the original may send what it ignores
FILE_STRICT: Final = False
# that of `require_delay`, unless it says `strict`: a misspelt `delay` would be ignored, and the job due at once
FILE_REQUIRE_DELAY: Final = True
# the address to connect to, for an address that the server listens on
HERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # wildcard addresses
MOST_BUCKETS: Final = 1024
MOST_REPLICA_TIMEOUT_MS: Final = 4000  # a call to the store may take 5 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of a server. `Config()` has the defaults without a config file."""

    bind_address: Address = option("0.0.0.0:9277", values.address, "where to listen for HTTP")
    protected_mode: bool = option("yes", values.yes_no, "serve clients on this machine only")
    auth_tokens: tuple[Grant, ...] = option(
        "",
        values.grants,
        "ROLE:TOKEN or ROLE:TOKEN:TOPICS, with commas between; empty = no token is needed",
        secret=True,
    )
    auth_tokens_file: Path | None = option(
        "", values.file, "file with more tokens, one per line; reloaded when it changes"
    )
    token_rate: int = option(
        "0",
        values.whole(0, 1_000_000),
        "most requests a second of a token in a process; 0 = no limit",
    )
    proxy_user_header: str = option(
        "",
        values.header,
        "header in which a proxy names the user that it has logged in, like Remote-User; empty = none does",
    )
    proxy_roles_header: str = option(
        "", values.header, "header in which it names the user's groups, with commas between"
    )
    proxy_roles: tuple[GroupRole, ...] = option(
        "",
        values.group_roles,
        "ROLE:GROUP, with commas between, * = everybody who is logged in; empty = groups are named like roles",
    )
    proxy_allow: tuple[IPv4Network | IPv6Network, ...] = option(
        "",
        values.networks,
        "addresses of such proxies, as CIDR, CIDR; others may not send these headers",
    )
    tls_cert: Path | None = option(
        "", values.file, "PEM file of the certificate and its chain; empty = plain HTTP"
    )
    tls_key: Path | None = option(
        "", values.file, "PEM file of the certificate's key; empty = it is in tls_cert"
    )
    tls_client_ca: Path | None = option(
        "", values.file, "PEM file of an authority; only clients it certifies are served"
    )
    workers: int = option(
        "1", values.workers, "server processes on the port: a number, or auto = one per core"
    )
    scheduler: str = option(
        "zset",
        values.choice("zset", "wheel"),
        "index of the delayed jobs: zset, or wheel, which takes less memory for large topics",
    )
    wheel_slots: int = option(
        "3600",
        values.wheel_slots,
        "slots that the wheel divides an hour into; 3600 is one a second",
    )
    bucket_size: int = option(
        "1", values.whole(1, MOST_BUCKETS), "buckets of the data; more than 1 is for Redis Cluster"
    )
    bucket_name: str = option(
        "dq_bucket_%d", values.template("%d"), "first part of every key in Redis"
    )
    queue_name: str = option("dq_queue_%s", values.queue_name, "last part of the ready lists' keys")
    queue_block_timeout_s: int = option(
        "178",
        values.whole(1, 86400),
        "how long /pop waits for a job, unless the request says less; "
        "the workers for Python and PHP ask for 30 s",
    )
    max_polls: int = option(
        "20000",
        values.whole(0, 10_000_000),
        "most /pop and /get that wait in a process; 0 = no limit",
    )
    max_connections: int = option(
        "25000",
        values.whole(0, 10_000_000),
        "most connections of a process; then a new one takes an idle one's place, or is refused; 0 = no limit",
    )
    buried_retain_s: int | None = option(
        "",
        values.optional(values.whole(1, 2**31)),
        "seconds that buried jobs are kept, unless their topic says otherwise; empty = until somebody ends them",
    )
    max_body_bytes: int = option(str(2**20), values.whole(1024, 2**30), "the longest body of a job")
    beanstalk_address: Address | None = option(
        "",
        values.optional(values.address),
        "HOST:PORT to listen on for beanstalkd clients; empty = do not listen",
    )
    beanstalk_topics: tuple[str, ...] = option(
        "",
        values.topics,
        "topics, or prefixes and *, that they may reach; empty = all, or none if tokens or a login are set",
    )
    beanstalk_tls: bool = option(
        "no", values.yes_no, "use TLS with them, with the certificate of tls_cert"
    )
    beanstalk_max_job_size_bytes: int = option(
        "65535", values.whole(1, 2**30), "the longest body of their jobs; never more than max_body"
    )
    redis_host: Address | None = option(
        EMBEDDED,
        values.redis_host,
        f"HOST:PORT, or {EMBEDDED}; not named in a config file: {FILE_REDIS_HOST}",
    )
    redis_db: int = option("1", values.whole(0, 2**31 - 1), "number of the database at redis.host")
    redis_user: str = option("", str, "ACL user of Redis; empty = the default one")
    redis_password: str = option("", str, "password of Redis; empty = none", secret=True)
    redis_url: str = option(
        "",
        values.redis_url,
        "redis:// (rediss://, unix://) URL, instead of redis.host, db, user and password",
        secret=True,
    )
    redis_sentinel: tuple[Address, ...] = option(
        "",
        values.addresses(values.SENTINEL_PORT),
        "HOST:PORT, ... of Sentinels, instead of redis.host",
    )
    redis_master_name: str = option("mymaster", str, "the Sentinels' name for the master")
    redis_sentinel_user: str = option("", str, "ACL user of the Sentinels; empty = the default one")
    redis_sentinel_password: str = option(
        "", str, "password of the Sentinels; empty = none", secret=True
    )
    redis_cluster: tuple[Address, ...] = option(
        "",
        values.addresses(values.REDIS_PORT),
        "HOST:PORT, ... of some servers of a Redis Cluster, instead of redis.host and db",
    )
    redis_tls: bool = option("no", values.yes_no, "use TLS with Redis and the Sentinels")
    redis_tls_ca: Path | None = option(
        "", values.file, "PEM file of the authority that certifies Redis; empty = the system's"
    )
    redis_tls_cert: Path | None = option(
        "", values.file, "PEM file of our certificate, if Redis wants one"
    )
    redis_tls_key: Path | None = option("", values.file, "PEM file of that certificate's key")
    durability: str = option(
        "store",
        values.choice("store", "fsync", "replica", "replica+fsync"),
        "when a push is answered: store = as soon as the store has it, fsync = once it is on its disk, "
        "replica = once replicas have it, replica+fsync = both",
    )
    require_noeviction: bool = option(
        "no",
        values.yes_no,
        "refuse pushes while the store drops jobs when its memory is full (maxmemory-policy allkeys-*)",
    )
    redis_min_replicas: int = option(
        "1",
        values.whole(1, 100),
        "with durability = replica: replicas that must have it; set the number that each master has",
    )
    redis_replica_timeout_ms: int = option(
        "1000",
        values.whole(1, MOST_REPLICA_TIMEOUT_MS),
        "how long they may take to say so, else the answer is 503",
    )
    redis_replicate: str = option(
        "changes",
        values.choice("pushes", "changes", "all"),
        "what waits for them: pushes; changes = also finish, delete and the like; all = also pop",
    )
    redis_max_idle: int = option(
        "10", values.whole(0, 10_000), "connections to Redis if max_active is 0"
    )
    redis_max_active: int = option(
        "0", values.whole(0, 10_000), "most connections to Redis; 0 = as max_idle"
    )
    redis_connect_timeout_ms: int = option(
        "5000", values.whole(1, 600_000), "limit for connecting to Redis"
    )
    redis_read_timeout_ms: int = option(
        "5000",
        values.whole(0, 2**31 - 1),
        "limit for an answer from Redis; more than 5000 counts as 5000",
    )
    redis_write_timeout_ms: int = option(
        "3000",
        values.whole(0, 2**31 - 1),
        "limit for sending to Redis; more than 5000 counts as 5000",
    )
    redis_binary: str = option(
        "", str, "server program of the embedded store; empty = look for one"
    )
    data_dir: Path | None = option(
        "",
        values.file,
        "where the embedded store keeps its data; empty = ./data if it is there, else in ~/.local/state",
    )
    webhook_allow: tuple[IPv4Network | IPv6Network, ...] = option(
        "", values.networks, "private networks that webhooks may reach, as CIDR, CIDR"
    )
    calls: bool = option(
        "no",
        values.yes_no,
        "make the calls of jobs that have one; yes only once all servers of the store are new enough",
    )
    call_allow: tuple[str | IPv4Network | IPv6Network, ...] = option(
        "",
        values.hosts,
        "hosts and networks that such jobs may have called, as api.example.com, *.example.com, "
        "10.1.0.0/16; empty = every public address",
    )
    call_concurrency: int = option(
        "10",
        values.whole(1, MAX_CONCURRENCY),
        "most calls at once to one host and port from each server process",
    )
    call_secret: tuple[tuple[str | None, str], ...] = option(
        "",
        values.call_secrets,
        "keys that sign the calls of jobs: whsec_ and base64, or TOPIC=whsec_..., with commas between; "
        "calls of a topic without a key are not signed",
        secret=True,
    )
    strict: bool = option(
        "yes",
        values.yes_no,
        "refuse unknown fields, delays of more than a year, and ids that another topic has; "
        "not named in a config file: no",
    )
    require_delay: bool = option(
        "no",
        values.yes_no,
        "refuse a push with neither delay nor due; with a config file that names neither this nor strict: yes",
    )
    language: str = option("zh", values.choice("zh", "en"), "language of messages: zh or en")
    admin_title: str = option(
        "",
        values.title,
        "the name of this server on the page at /admin: NAME, or NAME, COLOUR, like Production, red",
    )
    metrics_topics: int = option(
        "200", values.whole(0, 100_000), "topics that /metrics names; all others count as other"
    )
    history: bool = option("yes", values.yes_no, "keep data for /history in the store")
    traces: bool = option("no", values.yes_no, "export traces as OTEL_* variables say")
    log_level: str = option(
        "info", values.choice(*LEVELS), "lowest level that is logged: debug, info, warning, error"
    )
    log_format: str = option("text", values.choice("text", "json"), "lines as text or json")
    access_log: bool = option("no", values.yes_no, "log a line for each request; a third more work")
    # the sections of the file; None = there is no file, so nothing is declared
    sections: Sections | None = None

    # "FILE:LINE" or the variable's name, for each option that was set
    places: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    # the file that it was read from
    file: Path | None = field(default=None, repr=False, compare=False)

    @property
    def declared(self) -> Sections:
        """What the sections of the file declare."""
        return self.sections or Sections()

    @property
    def has_tokens(self) -> bool:
        """Whether there are tokens: a file without one is an error."""
        return bool(self.auth_tokens or self.auth_tokens_file)

    @property
    def requires_auth(self) -> bool:
        """Whether clients must authenticate, by a token or by a login at the proxy."""
        return self.has_tokens or bool(self.proxy_user_header)

    def value(self, key: str) -> Any:
        """The value of the setting with this key."""
        return getattr(self, OPTIONS[key].field)

    def shown(self) -> dict[str, str]:
        """The settings by key, as text, for people; of a secret only whether it is set."""
        shown = {key: _shown(row, self.value(key)) for key, row in OPTIONS.items()}
        return shown | ({"redis.host": EMBEDDED} if self.embedded else {})

    def set_in(self) -> dict[str, str]:
        """Where each setting was set that does not have its default: "FILE:LINE", or a variable's name."""
        usual = Config()
        set_keys = [key for key in self.places if self.value(key) != usual.value(key)]
        return {key: readable(self.places[key]) for key in set_keys}

    @property
    def own_address(self) -> Address:
        """Where the server is reached from its own machine."""
        return reached_at(self.bind_address)

    @property
    def own_url(self) -> str:
        """The server's URL on its own machine, without a path."""
        return f"{'https' if self.tls_cert else 'http'}://{self.own_address}"

    @property
    def embedded(self) -> bool:
        """Whether the server starts its own store."""
        elsewhere = self.redis_url or self.redis_sentinel or self.redis_cluster
        return self.redis_host is None and not elsewhere


def reached_at(address: Address) -> Address:
    """Where a server that listens there is reached from its own machine."""
    return address._replace(host=HERE.get(address.host, address.host))


_ROWS: Final[list[Option]] = [
    row.metadata["option"](row.name) for row in fields(Config) if "option" in row.metadata
]
OPTIONS: Final = {row.key: row for row in _ROWS}
VARIABLES: Final = {row.variable: row for row in _ROWS}


def _shown(option: Option, value: object) -> str:
    if option.secret:
        return "***" if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple) and not isinstance(value, Address):
        return ", ".join(map(str, value))
    return "" if value is None else readable(str(value))  # a path can be any bytes

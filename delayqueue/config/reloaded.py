"""Settings that take effect while a server runs, when their file changes."""

from typing import Final

# on SIGHUP a server applies these without a restart; the sections of the file, too
RELOADED: Final = frozenset(
    {
        "protected_mode",
        "auth_tokens",
        "auth_tokens_file",
        "token_rate",
        "tls_cert",
        "tls_key",
        "queue_block_timeout",
        "strict",
        "language",
        "admin_title",
        "metrics_topics",
        "log_level",
        "log_format",
        "access_log",
        "beanstalk_topics",
        "beanstalk_max_job_size",
    }
)

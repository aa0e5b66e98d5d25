"""Settings that follow their file while a server works."""

from typing import Final

# what a server that is told so (SIGHUP) puts into force without a restart; the sections of the file, too
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

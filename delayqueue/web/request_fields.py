"""What the fields of requests are, as /openapi.json tells it; the same name means the same everywhere."""

from typing import Any, Final

FIELDS: Final[dict[str, dict[str, Any]]] = {
    "topic": {
        "description": "What kind of job it is, 1 to 256 bytes. In /pop one, or several with commas between."
    },
    "id": {"description": 'Names the job, 1 to 1024 bytes. In /push "*" lets the server make one.'},
    "ids": {"description": "Many at once, in place of `id`.", "minItems": 1, "maxItems": 1000},
    "ttr": {
        "description": "Time to run, seconds: how long a worker may take.",
        "minimum": 1,
        "maximum": 86_400,
    },
    "delay": {"description": "Seconds from now until it is due.", "minimum": 0, "maximum": 2**31},
    "fallback": {
        "description": "Seconds that a job without a retry schedule waits before it comes again.",
        "minimum": 0,
        "maximum": 2**31,
    },
    "due": {
        "description": "Unix seconds at which it is due, in place of `delay`.",
        "minimum": 0,
        "maximum": 10**10,
    },
    "body": {"description": "For the worker; kept byte for byte."},
    "tags": {"description": "To cancel or list by, at most 64.", "maxItems": 64},
    "retry": {"description": "When a failed job comes again: one of `delays`, `preset`, `max`."},
    "if_exists": {
        "description": "What to do where the id is there already, `replace` where it is not said; "
        "in /subscribe where the name is another's, `fail` where it is not said.",
        "enum": ["replace", "keep", "fail"],
    },
    "retain": {
        "description": "Seconds for which its record is kept after its end.",
        "minimum": 0,
        "maximum": 2**31,
    },
    "expire": {
        "description": "Seconds after it was due when nobody needs it any more.",
        "minimum": 0.001,
        "maximum": 2**31,
    },
    "traceparent": {
        "description": "W3C trace context, in place of the request's header; /pop gives it back."
    },
    "delays": {"description": 'Seconds, or texts such as "15s", "2m".', "maxItems": 64},
    "preset": {"description": "The schedule of a payment service.", "enum": ["alipay", "wechat"]},
    "max": {"description": "So many delays by a formula.", "minimum": 1, "maximum": 64},
    "base": {"description": "The first delay of the formula."},
    "factor": {
        "description": "Each delay is so many times the one before.",
        "minimum": 1,
        "maximum": 100,
    },
    "cap": {"description": "No delay of the formula is longer."},
    "jitter": {
        "description": "Each delay is moved by up to this part of itself.",
        "minimum": 0,
        "maximum": 1,
    },
    "timeout": {
        "description": "Seconds: in /pop, to wait for the first job, at most `queue_block_timeout`, 0 = not at all; "
        "in /subscribe, that a call may take.",
        "minimum": 0,
    },
    "count": {
        "description": "How many jobs; in /pop, answer an array.",
        "minimum": 1,
        "maximum": 1000,
    },
    "limit": {"description": "How many at most.", "minimum": 1, "maximum": 1000},
    "cursor": {"description": "What the page before said."},
    "receipt": {"description": "That of the reservation, from /pop."},
    "receipts": {"description": 'One for each of `ids`, "" = whatever its state.'},
    "message": {"description": "Kept with the attempt, 1024 characters at most."},
    "topics": {"description": "Only these topics."},
    "match": {"description": "Only topics with this in their name."},
    "tag": {"description": "A tag, 1 to 256 bytes."},
    "state": {"description": "Only jobs in this state."},
    "start": {"description": "Unix seconds: the first due time.", "minimum": 0, "maximum": 10**10},
    "end": {"description": "Unix seconds: the last due time.", "minimum": 0, "maximum": 10**10},
    "step": {"description": "Seconds that a step has.", "exclusiveMinimum": 0, "maximum": 2**31},
    "seconds": {"description": "For how long.", "minimum": 0.001, "maximum": 2**31},
    "name": {"description": "Names the subscriber or the schedule, 1 to 128 bytes."},
    "cron": {
        "description": "Minute, hour, day, month, weekday; a field for seconds may come first."
    },
    "every": {"description": 'Seconds, or a text such as "15m"; counted from 1970.'},
    "tz": {"description": "The time zone of `cron`; UTC where it is not said."},
    "catch_up": {
        "description": "What to do about missed occurrences; `once` where it is not said.",
        "enum": ["skip", "once", "all"],
    },
    "url": {"description": "Where jobs are POSTed to, http or https.", "maxLength": 2048},
    "order": {
        "description": "The subscribers of a topic are called in this order.",
        "minimum": -1_000_000,
        "maximum": 1_000_000,
    },
    "concurrency": {
        "description": "Of a topic: jobs reserved at once, at least bucket_size. Of a subscriber: calls at once from"
        " each server process, at most 1000.",
        "minimum": 1,
        "maximum": 1_000_000,
    },
    "rate": {
        "description": "Deliveries a second; null = no limit.",
        "minimum": 0.001,
        "maximum": 100_000,
    },
    "burst": {
        "description": "Deliveries at once after a rest; a tenth of `rate` where it is not said.",
        "minimum": 1,
        "maximum": 1_000_000,
    },
    "buried_retain": {
        "description": "Seconds that a buried job is kept; null = as the server's settings say.",
        "exclusiveMinimum": 0,
        "maximum": 2**31,
    },
    "secret": {"description": "`whsec_` and base64: what webhooks are signed with."},
    "expect": {
        "description": "What the answer must be; with * at its beginning and its end what it must hold."
    },
    "on_failure": {
        "description": "What it means if the subscriber has failed for good: its job is buried, or ends as finished.",
        "enum": ["bury", "continue"],
    },
    "payload": {
        "description": "What is sent: the job's body, or a JSON object with the job and the results so far.",
        "enum": ["body", "event"],
    },
}

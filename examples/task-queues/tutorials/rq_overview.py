"""RQ's overview: a function counts the words of a page, and its result is read.

delay-queue worker rq_overview:worker, and beside it: python rq_overview.py http://example.com
"""

import sys
from urllib.request import urlopen

from delayqueue import Worker

worker = Worker()


@worker.task("words-at-url")
def count_words_at_url(url: str) -> int:
    with urlopen(url) as page:
        return len(page.read().split())


def main(url: str) -> None:
    job = worker.client.get(count_words_at_url.push(url, retain="500s"), wait="10s")
    print(job and job.message)


if __name__ == "__main__":
    main(sys.argv[1])

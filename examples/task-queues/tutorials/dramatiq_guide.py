"""dramatiq's guide: a task that counts the words of pages; three more tries; an address that is none; a call in 10 s.

delay-queue worker dramatiq_guide:worker, and beside it: python dramatiq_guide.py http://example.com ...
"""

import sys
from urllib.request import urlopen

from delayqueue import Worker

worker = Worker()


@worker.task("count-words", max_attempts=4, timeout="1m", bury_on=ValueError)
def count_words(url: str) -> None:
    with urlopen(url) as page:
        count = len(page.read().split(b" "))
    print(f"{count} words at {url}")


def main(*urls: str) -> None:
    count_words.push_many((url,) for url in urls)
    count_words.push("nowhere")
    count_words.push(urls[0], delay="10s")


if __name__ == "__main__":
    main(*sys.argv[1:])

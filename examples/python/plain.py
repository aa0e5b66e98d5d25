import json
from typing import Any
from urllib.request import Request, urlopen


def queue(verb: str, **request: object) -> Any:
    http_request = Request(f"http://localhost:9277/{verb}", json.dumps(request).encode())
    with urlopen(http_request, timeout=200) as response:  # seconds: longer than /pop waits
        answer = json.load(response)
    if answer["code"] != 0:
        raise RuntimeError(answer["message"])
    return answer["data"]


queue("push", topic="mail", id="mail-2", delay=0.5, ttr=60, body="Hello")

job = queue("pop", topic="mail")
print(f"{job['id']}: {job['body']}")  # mail-2: Hello
queue("finish", id=job["id"], receipt=job["receipt"])

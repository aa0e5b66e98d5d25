# .venv/bin/pip install fastapi uvicorn standardwebhooks
# .venv/bin/uvicorn receiver:app --port 8080

import os

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse
from standardwebhooks import Webhook, WebhookVerificationError

app = FastAPI()
webhook = Webhook(os.environ["CALL_SECRET"])


@app.post("/")
async def receive(request: Request) -> PlainTextResponse:
    try:
        message = webhook.verify(await request.body(), dict(request.headers))
    except WebhookVerificationError:
        raise HTTPException(401, "not from our queue") from None
    # at least once: a unique key of your database tells whether this id was here before
    print(f"{request.headers['webhook-id']}: {message}", flush=True)
    return PlainTextResponse("success")

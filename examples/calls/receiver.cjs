// npm install express
// node receiver.cjs

const crypto = require("node:crypto");
const express = require("express");

const key = Buffer.from(process.env.CALL_SECRET.replace("whsec_", ""), "base64");

function isSigned(request) {
  const [id, time, signature] = ["id", "timestamp", "signature"].map((name) => request.get(`webhook-${name}`) ?? "");
  const signed = crypto.createHmac("sha256", key).update(`${id}.${time}.`).update(request.body).digest("base64");
  const [expected, given] = [Buffer.from(`v1,${signed}`), Buffer.from(signature)];
  const isNow = Math.abs(Date.now() / 1000 - Number(time)) <= 300;
  return isNow && expected.length === given.length && crypto.timingSafeEqual(expected, given);
}

const app = express();
app.post("/", express.raw({ type: () => true }), (request, response) => {
  if (!isSigned(request)) return response.status(401).send("not from our queue");
  // at least once: a unique key of your database tells whether this id was here before
  console.log(`${request.get("webhook-id")}: ${request.body}`);
  response.send("success");
});
app.listen(process.env.PORT ?? 8080, "127.0.0.1");

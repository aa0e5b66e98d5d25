// Closes orders that are not paid in time. Node.js 18 or newer, nothing to install.
//
//   node orders.mjs place ORDER SECONDS   an order, closed after SECONDS unless it is paid
//   node orders.mjs paid ORDER            it is paid: cancel the job
//   node orders.mjs work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like

import { setTimeout as sleep } from "node:timers/promises";

const TTR_S = 60; // a worker that is silent for a minute is dead: another one gets the job
const SERVER = process.env.DELAYQUEUE_URL ?? "http://localhost:9277";
const TOKEN = process.env.DELAYQUEUE_TOKEN; // if the server requires one

/** Calls an endpoint: await queue("finish", { id: "1001" }). Returns the answer's data; every error is thrown. */
async function queue(verb, request) {
  const response = await fetch(`${SERVER}/${verb}`, {
    method: "POST",
    headers: TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {},
    body: JSON.stringify(request),
    signal: AbortSignal.timeout(200_000), // longer than /pop waits
  });
  const { code, message, data } = (await response.json()) ?? {};
  if (!Number.isInteger(code)) throw new Error(`not an answer of the queue: HTTP status ${response.status}`);
  if (code !== 0) throw Object.assign(new Error(message), { code });
  return data;
}

async function place(order, seconds) {
  await queue("push", {
    topic: "order-close",
    id: `close-${order}`, // an id is one job: pushing it again replaces it
    delay: Number(seconds),
    ttr: TTR_S,
    body: JSON.stringify({ order }),
    tags: [`order:${order}`], // what /cancel asks for
    retry: { delays: ["10s", "1m", "10m"] }, // after failures; then it is buried
  });
}

async function paid(order) {
  const { count } = await queue("cancel", { tag: `order:${order}` });
  console.log(`cancelled ${count}`);
}

async function work(jobs) {
  while (jobs > 0) {
    try {
      const job = await queue("pop", { topic: "order-close" });
      if (!job?.receipt) {
        await sleep(100); // nothing was due for three minutes
        continue;
      }
      await handle(job);
      jobs--;
    } catch (error) {
      console.error(error.cause?.code ?? error.message);
      await sleep(1000); // the server is being restarted
    }
  }
}

async function handle(job) {
  const deadline = Date.now() + TTR_S * 1000;
  let verb, message, fallback;
  try {
    [verb, message] = ["finish", await closeOrder(JSON.parse(job.body).order)];
  } catch (error) {
    // the schedule says when it is delivered again; without one, in ten seconds
    [verb, message, fallback] = ["release", String(error?.message ?? error), 10];
  }
  do {
    try {
      await queue(verb, { id: job.id, receipt: job.receipt, message, fallback });
      break;
    } catch (error) {
      if (error.code > 0 && error.code !== 6 && error.code !== 10) {
        message = error.message; // code 2: it has ended meanwhile; 4: we were too slow, another worker has it
        break;
      }
      console.error(error.cause?.code ?? error.message); // no answer, or code 6: nobody knows whether it was done; 10: too busy
      await sleep(1000);
    }
  } while (Date.now() < deadline);
  console.log(`${job.id}: ${message}`);
}

/** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
async function closeOrder(order) {
  if (!/^\d+$/.test(order)) throw new Error(`no order ${order}`);
  return `closed order ${order}`;
}

const [command, order, seconds] = process.argv.slice(2);
if (command === "place" && Number.isFinite(Number(seconds ?? NaN))) await place(order, seconds);
else if (command === "paid" && order !== undefined) await paid(order);
else if (command === "work" && /^\d+$/.test(order ?? "1")) await work(Number(order ?? Infinity));
else {
  console.error("the first lines of this file say how to use it");
  process.exit(2);
}

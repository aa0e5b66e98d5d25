// BullMQ: `node bullmq.mjs PORT`. side.py says what is read from the standard input, and what is answered.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";

const NAME = "bench";
const BODY_DIGITS = 40;
const connection = { host: "127.0.0.1", port: Number(process.argv[2]) };
// "Going to production": nobody wants to keep every job that is done; and jobs that fail are tried again
const options = { removeOnComplete: true, attempts: 3 };
const queue = new Queue(NAME, { connection });

function job(order) {
  const now = Date.now();
  const delay = order.due_ms ? Math.max(0, order.due_ms - now)
    : order.from_ms + Math.floor(Math.random() * (order.to_ms - order.from_ms + 1));
  const body = String(order.due_ms || now + delay).padStart(BODY_DIGITS, "0");
  return { name: "job", data: body, opts: { ...options, delay } };
}

async function push(order) {
  let left = order.jobs;
  let slot = performance.now();
  async function sender() {
    while (left > 0) {
      const count = Math.min(order.batch, left);
      left -= count;
      if (order.rate) {
        slot += 1000 / order.rate;
        await sleep(Math.max(0, slot - performance.now()));
      }
      const jobs = Array.from({ length: count }, () => job(order));
      // "Adding jobs in bulk": all of them or none, in one exchange
      if (order.batch > 1) await queue.addBulk(jobs);
      else await queue.add(jobs[0].name, jobs[0].data, jobs[0].opts);
    }
  }
  await Promise.all(Array.from({ length: order.at_once }, sender));
}

// Says how late each job was once all are done; only then it closes the worker, which takes a while.
async function work(order) {
  const late = [];
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  const handle = async (each) => {
    late.push(Date.now() - Number(each.data));
    if (late.length === order.jobs) end();
  };
  const worker = new Worker(NAME, handle, { connection, concurrency: order.at_once });
  await worker.waitUntilReady();
  say({});
  await ended;
  say({ late_ms: late.sort((one, other) => one - other) });
  await worker.close();
}

function say(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

await queue.waitUntilReady();
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  if (order.do === "push") {
    await push(order);
    say({});
  } else {
    await work(order);
  }
}
await queue.close();

// A topic: its counts, what becomes due when, its jobs by state and range of due times, and its dead letters in bulk.

import { call } from "../api.js";
import { action, ask, say, withProgress } from "../ask.js";
import { choices, fill, h } from "../dom.js";
import { localTime, number, seconds, unixTime } from "../format.js";
import { t } from "../i18n.js";
import { jobTable } from "./jobs.js";
import { forecastChart } from "./overview.js";
import { topicTags, topicActions } from "./topics.js";

const PAGE = 50;
const PIECE = 1000; // jobs that one call handles
const STATES = ["", "delayed", "ready", "reserved", "buried"];

export async function topic(content, argument, live) {
  const [name, first = "", range = ""] = argument.startsWith("[") ? JSON.parse(argument) : [argument];
  let state = first;
  let [start, end] = range ? range.split("-").map(Number) : [null, null];
  let cursors = [""]; // where each page that is shown begins
  const head = h("div", { class: "bar" });
  const jobs = h("div");
  const bulk = h("div", { class: "bar" });
  const forecast = forecastChart(name);
  const from = h("input", { type: "datetime-local", step: "1", "aria-label": t("from"), value: start ? localTime(start) : "" });
  const to = h("input", { type: "datetime-local", step: "1", "aria-label": t("to"), value: end ? localTime(end) : "" });
  const filters = h("div", { class: "bar" },
    choices(STATES.map((one) => [one, t(one || "all")]), state, (value) => { state = value; cursors = [""]; refresh().catch(() => {}); }, t("state")),
    h("span", { class: "grow" }),
    h("label", { class: "soft small" }, t("from"), " ", from), h("label", { class: "soft small" }, t("to"), " ", to));
  for (const input of [from, to]) {
    input.addEventListener("change", () => {
      [start, end] = [unixTime(from.value), unixTime(to.value)];
      cursors = [""];
      refresh().catch(() => {});
    });
  }
  fill(content, head, forecast.card, h("section", { class: "card" }, filters, bulk, jobs));

  async function refresh() {
    const [found] = await call("topics", { topics: [name] });
    const counts = found || { topic: name, delayed: 0, ready: 0, reserved: 0, buried: 0, paused: false, limit: null };
    fill(head, h("h1", {}, name, " ", topicTags(counts)), h("span", { class: "grow" }), topicActions(counts, refresh));
    fill(bulk, state === "buried" && counts.buried ? bulkActions(counts, refresh) : []);
    bulk.hidden = !bulk.childElementCount;
    const rows = [];
    let next = "";
    for (const cursor of cursors) {
      const page = await call("list", { topic: name, state: state || null, start, end, limit: PAGE, cursor });
      rows.push(...page.jobs);
      next = page.cursor;
      if (!next) break;
    }
    fill(jobs, jobTable(rows, { topic: false }), next && action(t("more"), async () => { cursors.push(next); await refresh(); }));
    await forecast.refresh();
  }
  await live(refresh);
}

/** For all dead letters of a topic. */
function bulkActions(counts, changed) {
  const { topic: name, buried } = counts;
  const kick = action(t("kickAll"), async () => {
    if (await ask(t("kickAll"), { text: t("kickAllAsk", number(buried), name) }) === null) return;
    let left = buried; // those only: one that is buried again meanwhile is a new dead letter
    await finish(withProgress(t("kickAll"), buried, async () => {
      if (left <= 0) return 0;
      const { count } = await call("kick", { topic: name, count: Math.min(PIECE, left) });
      left -= count;
      return count;
    }));
  });
  const delay = action(t("delayAll"), async () => {
    const answer = await ask(t("delayAll"), { input: t("delayAllAsk", number(buried), name), value: "10m" });
    if (answer === null) return;
    const wait = seconds(answer);
    await finish(withProgress(t("delayAll"), buried, async () => {
      const { jobs } = await call("list", { topic: name, state: "buried", limit: PIECE });
      if (jobs.length) await call("reschedule", { ids: jobs.map((job) => job.id), delay: wait });
      return jobs.length;
    }));
  });
  const remove = action(t("deleteAll"), async () => {
    if (await ask(t("deleteAll"), { text: t("deleteAllAsk", number(buried), name), danger: true, ok: t("deleteAll") }) === null) return;
    await finish(withProgress(t("deleteAll"), buried, async () => {
      const { jobs } = await call("list", { topic: name, state: "buried", limit: PIECE });
      if (jobs.length) await call("delete", { ids: jobs.map((job) => job.id) });
      return jobs.length;
    }));
  }, "danger");
  async function finish(done) {
    say(t("didCount", number(await done)));
    await changed();
  }
  return [kick, delay, remove];
}

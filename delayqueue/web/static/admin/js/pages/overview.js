// Counts, throughput and due times of all topics.

import { call } from "../api.js";
import { breaking, h, loading, table, words } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { FIRST_SPAN, forecastCard, forecastOf } from "./forecast.js";
import { FIRST_PAST, Past } from "./past.js";
import { jobLink } from "./jobs.js";
import { topicLink, troubleTable } from "./topics.js";

const STATES = ["delayed", "ready", "reserved", "buried"];

const FRESH = 20; // a forecast is kept this many times as long as it took

export class Overview extends Live {
  state = { span: FIRST_SPAN, past: FIRST_PAST };
  past = new Past("");

  /** The forecast, from memory while it is fresh: with many topics it costs the server most. */
  async forecast() {
    const { span } = this.state;
    const began = performance.now();
    if (this.known?.span !== span || began >= this.freshUntil) {
      this.known = await forecastOf("", span);
      this.freshUntil = began + FRESH * (performance.now() - began);
    }
    return this.known;
  }

  /** Each part is shown as soon as it is known: the counts take seconds if there are 100,000 topics. */
  async load() {
    const showPart = this.beginParts();
    return Object.assign({}, ...await Promise.all([
      this.past.of(this.state.past).then((past) => showPart({ past })),
      !this.state.data?.counts && call("stats", { counts: false }).then((stats) => showPart({ stats })),
      this.forecast().then((forecast) => showPart({ forecast })),
      call("stats").then((stats) => showPart({ stats, counts: stats })),
    ]));
  }

  view({ stats, counts, forecast, past }) {
    const troubled = [...clockTroubles(past), ...(stats?.troubles || [])];
    const known = (all, figure) => (all ? figure(all) : "…");
    return [
      h("h1", {}, t("overview")),
      stats?.store.warnings.map((text) => h("div", { key: text, class: "card warning" }, text)),
      h("div", { class: "tiles" },
        STATES.map((state) => tile(state === "buried" ? "dead" : `topics/${state}`, [h("span", { class: `dot ${state}` }), " ", t(state)], known(counts, (all) => number(all[state])), "")),
        tile("topics/oldest", t("oldest"), known(counts, (all) => length(all.oldest_ready_age)), t("oldestNote")),
        tile("servers", t("lateness"), h("span", { class: "two" }, known(stats, (all) => latenessOf(all.servers))), t("latenessNote")),
        tile("servers", t("waiting"), known(stats, (all) => number(all.servers.reduce((total, server) => total + server.waiting, 0))), "")),
      troubled.length > 0 && h("section", { class: "card troubles" }, h("h2", {}, t("attention")), troublesTable(troubled)),
      h("div", { class: "columns" },
        forecast ? forecastCard(forecast, (span) => this.choose({ span })) : busyCard(t("due")),
        past ? this.past.card(this.state.past, (chosen) => this.choose({ past: chosen })) : busyCard(t("past"))),
      h("section", { class: "card" },
        h("div", { class: "bar" }, h("h2", {}, t("busiest")), h("span", { class: "grow" }), h("a", { href: "#/topics" }, t("all"))),
        counts ? troubleTable(counts.attention) : loading()),
      stats?.outboxes?.length > 0 && h("section", { class: "card" }, h("h2", {}, t("outboxes")), outboxTable(stats.outboxes)),
    ];
  }
}

const RECENT_S = 3600;

/** That the store's clock jumped lately, as a trouble of /stats. The marks have that clock's times, which may be hours away from this one's. */
function clockTroubles(past) {
  if (!past) return [];
  const ahead = past.start + past.pushed.length * past.step - Date.now() / 1000; // by up to a step, if both are right
  const shift = Math.abs(ahead) > 2 * past.step ? ahead : 0;
  return past.marks.map((mark) => ({ ...mark, at: mark.at - shift })).filter(({ kind, at }) => kind === "clock" && at > Date.now() / 1000 - RECENT_S)
    .slice(0, 1).map(({ at }) => ({ kind: "clock", name: "", count: 1, at, message: "" }));
}

// by the kind of trouble: what it is about, and what is shown about it
const TROUBLES = {
  job: [({ name }) => jobLink(name), "troubleJob", ({ topic, message }) => [topicLink(topic), message && [" · ", workerLink(message)]]],
  worker: [({ name }) => workerLink(name), "troubleWorker", ({ message }) => jobLink(message)],
  subscriber: [({ name }) => h("a", { href: "#/subscribers" }, breaking(name)), "troubleSubscriber", ({ message }) => words(message)],
  host: [({ name }) => h("a", { href: "#/calls" }, breaking(name)), "troubleSubscriber", ({ message }) => words(message)],
  pushes: [({ name }) => t("pushesRefused", name), "troublePushes", ({ name }) => t(`code_${name}`)],
  connections: [() => t("newConnections"), "troublePushes", () => t("connectionsFull")],
  lost: [({ topic }) => topicLink(topic), "troubleLost", () => t("lostDetails")],
  clock: [() => t("theClock"), "clockJumped", () => ""],
};
const workerLink = (name) => h("a", { href: `#/workers/${encodeURIComponent(name)}` }, breaking(name));

/** What goes wrong again and again, apart from topics. Kinds that only a newer server knows are left out. */
const troublesTable = (rows) => table([
  { name: t("whatFails"), class: "wide title", cell: (row) => TROUBLES[row.kind][0](row) },
  { name: t("why"), class: "wide", cell: (row) => t(TROUBLES[row.kind][1], number(row.count)) },
  { name: t("details"), class: "wide", cell: (row) => TROUBLES[row.kind][2](row) },
  { name: t("last"), class: "time", cell: ({ at }) => h("span", { title: time(at) }, relative(at)) },
], rows.filter(({ kind }) => TROUBLES[kind]), ({ kind, name }) => `${kind} ${name}`, "", null, "compact");

/** A card whose content is not known yet. */
const busyCard = (title) => h("section", { class: "card busy", "aria-busy": "true" }, h("h2", {}, title), loading());

/** What relays tell of their outboxes. */
const outboxTable = (outboxes) => table([
  { name: t("name"), class: "wide title", cell: (one) => breaking(one.name) },
  { name: t("failedRows"), class: "number", cell: (one) => h("span", { class: one.failed ? "failed" : null }, number(one.failed)) },
  { name: t("newestReason"), class: "wide", cell: (one) => words(one.reason) },
  { name: t("oldestRow"), class: "number time", cell: (one) => (one.oldest_age ? length(one.oldest_age) : "–") },
  { name: t("heard"), cell: (one) => relative(one.seen) },
], outboxes, (one) => one.name);

/** A figure that leads to the page with its parts. */
const tile = (path, name, value, note) => h("a", { class: "tile", href: `#/${path}` },
  h("div", { class: "name" }, name), h("div", { class: "value" }, value), h("div", { class: "note" }, note));

/** The lateness of the server that is worst. */
function latenessOf(servers) {
  const known = servers.filter((server) => server.lateness_p99 !== null);
  if (!known.length) return "–";
  const worst = (field) => h("span", {}, length(Math.max(...known.map((server) => server[field]))));
  return [worst("lateness_p50"), " / ", worst("lateness_p99")];
}

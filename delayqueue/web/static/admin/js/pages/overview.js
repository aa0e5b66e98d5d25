// What there is, how fast it goes, and what becomes due when.

import { call } from "../api.js";
import { bars, lines } from "../chart.js";
import { choices, fill, h } from "../dom.js";
import { length, number, rate } from "../format.js";
import { t } from "../i18n.js";
import { topicTable } from "./topics.js";

const STATES = ["delayed", "ready", "reserved", "buried"];
const RATES = [["pushed", "--delayed"], ["delivered", "--reserved"], ["finished", "--ready"]];
const POINTS = 300; // of the rates: ten minutes
const SPANS = [[900, "15m"], [3600, "1h"], [6 * 3600, "6h"], [86400, "1d"], [7 * 86400, "1w"], [30 * 86400, "30d"], [182 * 86400, "6M"]];
const BARS = 60;

export async function overview(content, _, live) {
  const tiles = h("div", { class: "tiles" });
  const warnings = h("div");
  const rates = rateChart();
  const forecast = forecastChart("");
  const busiest = h("div");
  fill(content, h("h1", {}, t("overview")), warnings, tiles, h("div", { class: "columns" }, forecast.card, rates.card),
    h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, t("busiest")), h("span", { class: "grow" }), h("a", { href: "#/topics" }, t("all"))), busiest));
  await live(async () => {
    const stats = await call("stats");
    fill(warnings, stats.store.warnings.map((text) => h("div", { class: "card warning" }, text)));
    fill(tiles, STATES.map((state) => tile(h("span", {}, h("span", { class: `dot ${state}` }), " ", t(state)), number(stats[state]), "")),
      tile(t("oldest"), length(stats.oldest_ready_age), t("oldestNote")),
      tile(t("lateness"), h("span", { class: "two" }, latenessOf(stats.servers)), t("latenessNote")),
      tile(t("waiting"), number(sum(stats.servers, "waiting")), ""));
    rates.add(stats.servers);
    fill(busiest, topicTable(stats.busiest));
    await forecast.refresh();
  });
}

const tile = (name, value, note) => h("div", { class: "tile" }, h("div", { class: "name" }, name), h("div", { class: "value" }, value), h("div", { class: "note" }, note));
const sum = (rows, field) => rows.reduce((total, row) => total + row[field], 0);

/** The worst of the servers. */
function latenessOf(servers) {
  const known = servers.filter((server) => server.lateness_p99 !== null);
  if (!known.length) return "–";
  const worst = (field) => length(Math.max(...known.map((server) => server[field])));
  return `${worst("lateness_p50")} / ${worst("lateness_p99")}`;
}

/** Jobs per second, from the servers' counters, since the page was opened. */
function rateChart() {
  const place = h("div", { class: "chart" });
  const legend = h("div", { class: "legend" });
  const card = h("section", { class: "card" }, h("h2", {}, t("rates")), place, legend);
  fill(place, h("p", { class: "empty" }, t("collecting")));
  const data = [[], ...RATES.map(() => [])];
  const before = new Map(); // server -> its last figures
  let plot = null;
  function add(servers) {
    const now = RATES.map(() => 0);
    let known = false;
    for (const server of servers) {
      const last = before.get(server.name);
      if (last && server.seen > last.seen && server.started === last.started) {
        known = true;
        RATES.forEach(([field], index) => { now[index] += (server[field] - last[field]) / (server.seen - last.seen); });
        server.rates = RATES.map(([field]) => (server[field] - last[field]) / (server.seen - last.seen));
      } else if (last?.rates && server.seen === last.seen) {
        known = true;
        last.rates.forEach((value, index) => { now[index] += value; });
        server.rates = last.rates;
      }
      before.set(server.name, server);
    }
    if (!known) return;
    data[0].push(Date.now() / 1000);
    now.forEach((value, index) => data[index + 1].push(Math.max(0, value)));
    if (data[0].length > POINTS) data.forEach((values) => values.shift());
    fill(legend, RATES.map(([field, colour], index) => h("span", {}, dot(colour), t(field === "finished" ? "done" : field), " ", h("b", {}, rate(now[index])))));
    if (!place.isConnected || data[0].length < 2) return;
    if (plot) plot.setData(data);
    else { fill(place); plot = lines(place, RATES.map(([name, colour]) => ({ name, colour })), data, rate); }
  }
  return { card, add };
}

function dot(colour) {
  const element = h("span", { class: "dot" });
  element.style.background = `var(${colour})`;
  return element;
}

/** How many jobs fall due in each step; of all topics for "". */
export function forecastChart(topic) {
  const place = h("div", { class: "chart pointer" });
  const note = h("p", { class: "soft small" });
  let span = SPANS[1][0];
  let drawn = "";
  const pick = choices(SPANS, span, (value) => { span = value; drawn = ""; refresh().catch(() => {}); }, t("due"));
  const card = h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, t("due")), h("span", { class: "grow" }), pick), place, note);
  async function refresh() {
    const step = span / BARS;
    const start = Math.floor(Date.now() / 1000 / step) * step;
    const { counts } = await call("forecast", { topic: topic || null, start, end: start + span, step });
    const picture = JSON.stringify([start, step, counts]);
    if (picture === drawn || !place.isConnected) return;
    drawn = picture;
    fill(place);
    const total = counts.reduce((all, count) => all + count, 0);
    fill(note, total ? t("dueHint") : t("noneDue"));
    bars(place, counts.map((_, index) => start + index * step), step, counts, number, (index) => {
      const range = `${start + index * step}-${start + (index + 1) * step - 0.001}`;
      location.hash = topic ? `#/topic/${encodeURIComponent(JSON.stringify([topic, "delayed", range]))}` : `#/due/${range}`;
    });
  }
  return { card, refresh };
}

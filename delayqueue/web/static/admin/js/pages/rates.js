// Jobs per second, from the servers' counters, since the page was opened.

import { lines } from "../chart.js";
import { h } from "../dom.js";
import { rate } from "../format.js";
import { t } from "../i18n.js";

const RATES = [["pushed", "--delayed"], ["delivered", "--reserved"], ["finished", "--ready"]];
const POINTS = 300; // ten minutes

export class Rates {
  #before = new Map(); // server -> its last figures, with the rates that they told
  #data = [[], ...RATES.map(() => [])];

  /** Note the servers' figures. */
  add(servers) {
    const known = servers.map((server) => this.#of(server)).filter(Boolean);
    if (!known.length) return;
    const now = RATES.map((_, index) => known.reduce((sum, rates) => sum + rates[index], 0));
    this.#data = [[...this.#data[0], Date.now() / 1000], ...now.map((value, index) => [...this.#data[index + 1], Math.max(0, value)])]
      .map((values) => values.slice(-POINTS));
  }

  #of(server) {
    const last = this.#before.get(server.name);
    let rates = last?.rates;
    if (last && server.started !== last.started) rates = null;
    else if (last && server.seen > last.seen) rates = RATES.map(([field]) => (server[field] - last[field]) / (server.seen - last.seen));
    this.#before.set(server.name, { ...server, rates });
    return rates;
  }

  card() {
    const [times, ...values] = this.#data;
    return h("section", { class: "card" }, h("h2", {}, t("rates")),
      times.length < 2 ? h("p", { class: "empty" }, t("collecting")) : lines(t("rates"), RATES, this.#data, rate),
      times.length > 0 && h("div", { class: "legend" }, RATES.map(([field, colour], index) => h("span", {},
        h("span", { class: "dot", style: { background: `var(${colour})` } }), t(field === "finished" ? "done" : field), " ", h("b", {}, rate(values[index].at(-1)))))));
  }
}

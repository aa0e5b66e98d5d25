// How many jobs fall due in each step of a span of time.

import { call } from "../api.js";
import { bars } from "../chart.js";
import { choices, h } from "../dom.js";
import { length, number } from "../format.js";
import { t } from "../i18n.js";

const SPANS = [900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 180 * 86400]; // seconds
export const FIRST_SPAN = SPANS[1];
const BARS = 60;

/** What falls due in the next `span` seconds, in a topic, or in all topics for "". */
export async function forecastOf(topic, span) {
  const step = span / BARS;
  const start = Math.floor(Date.now() / 1000 / step) * step;
  const { counts } = await call("forecast", { topic: topic || null, start, end: start + span, step });
  return { topic, span, step, times: counts.map((_, index) => start + index * step), counts };
}

/** A card with its chart; onspan gets the chosen span. */
export function forecastCard({ topic, span, step, times, counts }, onspan) {
  const chosen = (start) => {
    const range = `${start}-${start + step - 0.001}`;
    location.hash = topic ? `#/topic/${encodeURIComponent(JSON.stringify([topic, "delayed", range]))}` : `#/due/${range}`;
  };
  return h("section", { class: "card" },
    h("div", { class: "bar" }, h("h2", {}, t("due")), h("span", { class: "grow" }), choices(SPANS.map((one) => [one, length(one)]), span, onspan, t("due"))),
    bars(t("due"), step, [times, counts], number, chosen),
    h("p", { class: "soft small" }, counts.some(Boolean) ? t("dueHint") : t("noneDue")));
}

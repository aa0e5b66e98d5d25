// The servers, their store, and the settings.

import { call } from "../api.js";
import { fill, h, table } from "../dom.js";
import { bytes, length, number, relative } from "../format.js";
import { t } from "../i18n.js";

export async function servers(content, _, live) {
  const list = h("div");
  const store = h("div");
  const settings = h("div");
  fill(content, h("h1", {}, t("servers")), h("section", { class: "card" }, list),
    h("section", { class: "card" }, h("h2", {}, t("store")), store), h("section", { class: "card" }, h("h2", {}, t("settings")), settings));
  await live(async () => {
    const stats = await call("stats");
    fill(list, table([
      { name: t("server"), class: "wide", cell: (server) => server.name },
      { name: t("version"), cell: (server) => server.version },
      { name: t("since"), cell: (server) => relative(server.started) },
      { name: t("waiting"), class: "number", cell: (server) => number(server.waiting) },
      { name: t("lateness"), class: "number", cell: (server) => `${length(server.lateness_p50)} / ${length(server.lateness_p99)}` },
    ], stats.servers, t("offline")));
    const limit = stats.store.memory_limit ? t("memoryLimit", bytes(stats.store.memory_limit)) : t("noLimit");
    const facts = [
      [t("version"), stats.store.version],
      [t("memory"), `${bytes(stats.store.memory)} (${limit})`],
      [t("durable"), stats.store.durable ? t("yes") : t("no")],
    ];
    fill(store, h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      stats.store.warnings.map((text) => h("p", { class: "card warning" }, text)));
    fill(settings, table([
      { name: t("setting"), cell: ([name]) => h("code", {}, name) },
      { name: t("value"), class: "wide", cell: ([, value]) => h("code", {}, value) },
    ], Object.entries(stats.settings), ""));
  }, 5000);
}

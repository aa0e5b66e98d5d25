// The servers, their store, and the settings.

import { call } from "../api.js";
import { breaking, choices, facts, h, table } from "../dom.js";
import { bytes, length, number, relative } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";

export class Servers extends Live {
  everyMs = 5000;

  load() {
    return call("stats", { counts: false });
  }

  view({ servers, store, settings, set_in: places }) {
    const memory = bytes(store.memory);
    const { all } = this.state;
    const shown = Object.entries(settings).filter(([name]) => all || name in places);
    return [
      h("h1", {}, t("servers")),
      h("section", { class: "card" }, table([
        { name: t("server"), class: "wide", cell: (server) => server.name },
        { name: t("version"), cell: (server) => server.version },
        { name: t("since"), cell: (server) => relative(server.started) },
        { name: t("waiting"), class: "number", cell: (server) => number(server.waiting) },
        { name: t("lateness"), class: "number", cell: (server) => `${length(server.lateness_p50)} / ${length(server.lateness_p99)}` },
      ], servers, (server) => server.name, t("offline"))),
      h("section", { class: "card" }, h("h2", {}, t("store")), facts([
        [t("version"), store.version],
        [t("memory"), store.memory_limit ? t("memoryLimit", memory, bytes(store.memory_limit)) : t("noLimit", memory)],
        [t("durable"), store.durable ? t("yes") : t("no")],
      ]), store.warnings.map((text) => h("p", { key: text, class: "card warning" }, text))),
      h("section", { class: "card" },
        h("div", { class: "bar" }, h("h2", {}, t("settings")), h("span", { class: "grow" }),
          choices([[false, t("changed")], [true, t("all")]], Boolean(all), (chosen) => this.setState({ all: chosen }), t("settings"))),
        table([
          { name: t("setting"), class: "title", cell: ([name]) => h("code", {}, name) },
          { name: t("value"), class: "wide", cell: ([, value]) => h("code", {}, value) },
          { name: t("setIn"), class: "wide", cell: ([name]) => (name in places ? h("code", {}, breaking(places[name])) : h("span", { class: "soft" }, t("byDefault"))) },
        ], shown, ([name]) => name, t("noneChanged"), null, "compact")),
    ];
  }
}

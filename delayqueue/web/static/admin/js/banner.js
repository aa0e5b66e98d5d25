// What is wrong with the store, above each page: the words of /readyz.

import { call, look, may } from "./api.js";
import { action, ask } from "./ask.js";
import { Component, h } from "./dom.js";
import { time } from "./format.js";
import { t } from "./i18n.js";

const EVERY_MS = 2000;
const TIME = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/; // as the server tells it

/** Whether a red line is there, so that no page needs to say the same. */
export const isAlarmed = () => document.querySelector(".banner") !== null;

/** Red lines while the server is not ready, or its store takes no jobs, loses some or was emptied. */
export class Banner extends Component {
  state = { alarms: [] };

  async componentDidMount() {
    for (;;) {
      if (!document.hidden) this.setState(await troubles());
      await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
    }
  }

  accept = async () => {
    if (await ask(t("acceptStoreTitle"), { text: t("acceptStoreAsk"), ok: t("acceptStore"), danger: true }) === null) return;
    await call("accept-store");
    this.setState(await troubles());
  };

  render(_, { alarms, emptied }) {
    return alarms.map((line, index) => h("div", { key: line, class: "banner", role: "alert" }, h("span", {}, here(line)),
      emptied && index === alarms.length - 1 && may("accept-store") && action(t("acceptStore"), this.accept)));
  }
}

/** The line with its time in the zone of the browser, as all times on the page. */
const here = (line) => line.replace(TIME, (_, date, clock) => time(Date.parse(`${date}T${clock}Z`) / 1000));

async function troubles() {
  try {
    const { alarms = [], emptied = false } = await look("readyz") ?? {};
    return { alarms, emptied };
  } catch (error) {
    return { alarms: error.code === null ? [] : [error.message], emptied: false }; // without an answer, each page says so
  }
}

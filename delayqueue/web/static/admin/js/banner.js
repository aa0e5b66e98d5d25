// What is wrong with the store, above each page: the words of /readyz.

import { look } from "./api.js";
import { Component, h } from "./dom.js";

const EVERY_MS = 2000;

/** Red lines while the server is not ready, or its store takes no jobs or loses some. */
export class Banner extends Component {
  state = { lines: [] };

  async componentDidMount() {
    for (;;) {
      if (!document.hidden) this.setState({ lines: await troubles() });
      await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
    }
  }

  render(_, { lines }) {
    return lines.map((line) => h("div", { key: line, class: "banner" }, line));
  }
}

async function troubles() {
  try {
    return (await look("readyz"))?.alarms ?? [];
  } catch (error) {
    return error.code === null ? [] : [error.message]; // without an answer, each page says so
  }
}

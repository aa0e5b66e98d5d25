// Pages that refresh themselves.

import { FORBIDDEN, UNAUTHORIZED, UNAVAILABLE } from "./api.js";
import { isAlarmed } from "./banner.js";
import { Component, h, loading } from "./dom.js";
import { clock } from "./format.js";
import { t } from "./i18n.js";
import { signIn } from "./session.js";

export const NEVER_MS = 1e9; // as `everyMs`
const RETRY_MS = 2000;
const OLD_S = 300; // longer than any pause: the tab, or the machine, was asleep
const SHARE = 4; // a page whose load takes long waits this many times as long before the next one

/** A page: load() fetches what view(data) shows, again and again. Its state is what the user chose. */
export class Live extends Component {
  everyMs = 2000;
  turn = 0; // of the newest load; results of older ones are dropped
  tookMs = 0; // what the last load took

  async componentDidMount() {
    while (!this.left) {
      this.tookMs = 0;
      if (!document.hidden || this.state.data === undefined) {
        if (!this.state.complaint && Date.now() / 1000 - this.state.at > OLD_S) this.setState({ complaint: t("loading") });
        await this.refresh();
      }
      const pauseMs = this.state.complaint ? Math.min(this.everyMs, RETRY_MS) : Math.max(this.everyMs, SHARE * this.tookMs);
      await new Promise((resolve) => { setTimeout(resolve, pauseMs); });
    }
  }

  componentWillUnmount() {
    this.left = true;
  }

  getSnapshotBeforeUpdate() {
    return document.activeElement;
  }

  componentDidUpdate(_, __, focused) { // keep the focus on the page if its row is gone
    if (!focused.isConnected) document.getElementById("content").focus();
  }

  refresh = async () => {
    this.turn += 1;
    const turn = this.turn;
    const began = performance.now();
    let next;
    try {
      next = { data: await this.load(), complaint: null, at: Date.now() / 1000 };
      this.tookMs = performance.now() - began; // without the time that a user needs to sign in
    } catch (error) {
      if (this.left) return;
      if (error.code === UNAUTHORIZED) {
        await signIn(error.message);
        await this.refresh();
        return;
      }
      next = { complaint: words(error) };
      if (error.code === FORBIDDEN) this.left = true; // asking again would not help
    }
    if (turn === this.turn) this.setState(next);
  };

  /** For a load whose parts take different times: returns a function that shows a part of what view() gets at once, unless a newer load has begun. */
  beginParts() {
    const { turn } = this;
    return (part) => {
      if (!this.left && turn === this.turn) this.setState(({ data }) => ({ data: { ...data, ...part }, at: Date.now() / 1000 }));
      return part;
    };
  }

  /** The user chose something else. */
  choose(state) {
    this.setState(state, this.refresh);
  }

  render(_, { data, complaint, at }) {
    const isStale = Boolean(complaint) && data !== undefined;
    return [
      complaint && h("div", { class: "card error", role: "alert" }, complaint, isStale && [" ", h("b", {}, t("asOf", clock(at)))]),
      data === undefined && !complaint && loading(),
      data !== undefined && h("div", { class: isStale ? "stale" : null }, this.view(data)),
    ];
  }
}

function words(error) {
  if (error.code === null) return t("offline");
  if (error.code === UNAVAILABLE && isAlarmed()) return t("storeAwaited");
  return error.code === FORBIDDEN ? `${t("noRole")} ${error.message}` : error.message;
}

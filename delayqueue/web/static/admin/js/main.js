// The frame of the page: navigation, search, language, theme, token, and which page is shown.

import { UNAUTHORIZED, FORBIDDEN, dropToken, hasToken, learnRoles, may, setToken } from "./api.js";
import { ask } from "./ask.js";
import { fill, h } from "./dom.js";
import { current, switchLanguage, t } from "./i18n.js";
import { job } from "./pages/job.js";
import { due } from "./pages/due.js";
import { overview } from "./pages/overview.js";
import { push } from "./pages/push.js";
import { schedules, subscribers } from "./pages/registered.js";
import { servers } from "./pages/servers.js";
import { tag } from "./pages/tag.js";
import { topic } from "./pages/topic.js";
import { topics } from "./pages/topics.js";

// path -> page; the rest of the path is the page's argument
const PAGES = { "": overview, topics, topic, job, tag, due, push, subscribers, schedules, servers };
// path, text, a verb that it needs
const MENU = [["", "overview", "stats"], ["topics", "topics", "topics"], ["push", "push", "push"], ["subscribers", "subscribers", "subscribers"],
  ["schedules", "schedules", "schedules"], ["servers", "servers", "stats"]];

let leave = null; // ends what the present page does in the background

/** The path behind #/ as [page, argument]. */
function place() {
  const path = location.hash.replace(/^#\/?/, "");
  const cut = path.indexOf("/");
  return cut < 0 ? [path, ""] : [path.slice(0, cut), decodeURIComponent(path.slice(cut + 1))];
}

async function show() {
  leave?.();
  const controller = new AbortController();
  leave = () => controller.abort();
  const content = document.getElementById("content");
  const [name, argument] = place();
  frame(name);
  const page = PAGES[name];
  if (!page) { fill(content, h("p", { class: "empty" }, t("notFound"))); return; }
  fill(content);
  await page(content, argument, live(content, controller.signal));
}

/** What pages keep themselves fresh with: live(work) repeats it every two seconds until the page is left. */
function live(content, signal) {
  const complaint = h("div", { class: "card error", role: "alert", hidden: true });
  return async function repeat(work, everyMs = 2000) {
    while (!signal.aborted) {
      try {
        if (!document.hidden) await work(signal);
        complaint.remove();
      } catch (error) {
        if (signal.aborted) return;
        if (error.code === UNAUTHORIZED) { await signIn(); continue; }
        complaint.hidden = false;
        complaint.textContent = error.code === null ? t("offline") : error.code === FORBIDDEN ? `${t("noRole")} ${error.message}` : error.message;
        content.prepend(complaint);
        if (error.code === FORBIDDEN) return;
      }
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
}

async function signIn() {
  dropToken();
  const token = await ask(t("token"), { text: t("tokenAsk"), input: "Token", password: true, ok: t("signIn") });
  if (token) setToken(token);
  await learnRoles().catch(() => {});
  frame(place()[0]);
}

function frame(name) {
  document.documentElement.lang = current() === "zh" ? "zh-CN" : "en";
  document.getElementById("skip").textContent = t("skip");
  fill(document.getElementById("nav"), MENU.filter(([, , verb]) => may(verb)).map(([path, text]) =>
    h("a", { href: `#/${path}`, "aria-current": path === name ? "page" : null }, t(text))));
  const search = document.querySelector("#search input");
  search.placeholder = t("search");
  search.setAttribute("aria-label", t("search"));
  fill(document.getElementById("tools"),
    hasToken() && h("button", { type: "button", onclick: () => { dropToken(); location.reload(); } }, t("signOut")),
    h("button", { type: "button", title: t("theme"), "aria-label": t("theme"), onclick: switchTheme }, "◐"),
    h("button", { type: "button", onclick: () => { switchLanguage(); show(); } }, t("language")));
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  show();
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = event.target.elements.q.value.trim();
  if (!asked) return;
  location.hash = asked.startsWith("tag:") ? `#/tag/${encodeURIComponent(asked.slice(4).trim())}` : `#/job/${encodeURIComponent(asked)}`;
});
addEventListener("hashchange", show);
const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
await learnRoles().catch(() => {}); // without a token the page asks for one
show();

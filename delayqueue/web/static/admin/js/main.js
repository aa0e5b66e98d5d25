// The frame of the page: navigation, search, language, theme, token, and which page is shown.

import { call, dropToken, hasToken, may, userName } from "./api.js";
import { showingErrors } from "./ask.js";
import { Banner } from "./banner.js";
import { goTo, h, render } from "./dom.js";
import { zone } from "./format.js";
import { current, switchLanguage, t } from "./i18n.js";
import { Calls } from "./pages/calls.js";
import { Dead } from "./pages/dead.js";
import { Due } from "./pages/due.js";
import { Edit } from "./pages/edit.js";
import { Find, searchPlace, wantedOf } from "./pages/find.js";
import { JobPage } from "./pages/job.js";
import { jobPlace } from "./pages/jobs.js";
import { Overview } from "./pages/overview.js";
import { Push } from "./pages/push.js";
import { Schedules, Subscribers } from "./pages/registered.js";
import { Servers } from "./pages/servers.js";
import { TagPage } from "./pages/tag.js";
import { TopicPage } from "./pages/topic.js";
import { topicAt, Topics } from "./pages/topics.js";
import { Workers } from "./pages/workers.js";
import { CHANGED, environment, learn } from "./session.js";

// path -> page; the rest of the path is the page's argument
const PAGES = { "": Overview, topics: Topics, topic: TopicPage, job: JobPage, tag: TagPage, due: Due, dead: Dead, find: Find, push: Push, clone: Push, edit: Edit, subscribers: Subscribers,
  schedules: Schedules, calls: Calls, workers: Workers, servers: Servers };
// the pages that a search leads to: on these, the search field keeps its text
const SEARCHED = ["job", "tag", "find"];
// path, text, the verb that the page needs
const MENU = [["", "overview", "stats"], ["topics", "topics", "topics"], ["dead", "deadLetters", "buried"],
  ["push", "push", "push"], ["subscribers", "subscribers", "subscribers"],
  ["schedules", "schedules", "schedules"], ["calls", "calls", "stats"], ["workers", "workers", "workers"],
  ["servers", "servers", "stats"]];

const element = (id) => document.getElementById(id);
const field = document.querySelector("#search input");

let visit = 0; // of a page; each one begins anew, also that of the same place

/** The path behind #/ as [page, argument]; an argument that is not encoded as it should be belongs to no page. */
function place() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return [name, decodeURIComponent(rest.join("/"))];
  } catch {
    return [null, ""];
  }
}

function show() {
  const [asked, argument] = place();
  const menu = MENU.filter(([, , verb]) => may(verb));
  const name = asked === "" && menu.length ? menu[0][0] : asked; // who may not see the overview begins with another page
  frame(name, menu, argument);
  render(Object.hasOwn(PAGES, name) ? h(PAGES[name], { key: visit, argument }) : h("p", { class: "empty" }, t("notFound")), element("content"));
}

const TITLES = { ...Object.fromEntries(MENU), find: "searchResults", due: "due" };

/** What the tab is called: by its page, or by the topic, job or tag that the page is about. */
function titleOf(name, argument) {
  if (Object.hasOwn(TITLES, name)) return t(TITLES[name]);
  return (name === "topic" && topicAt(argument)[0]) || argument;
}

function frame(name, menu, argument) {
  document.documentElement.lang = current() === "zh" ? "zh-CN" : "en";
  element("skip").textContent = t("skip");
  render(menu.map(([path, text]) =>
    h("a", { key: path, href: `#/${path}`, "aria-current": path === name ? "page" : null }, t(text))), element("nav"));
  element("nav").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const named = environment();
  document.title = [named?.name, titleOf(name, argument), "delay-queue"].filter(Boolean).join(" · ");
  render(named && h("div", { class: `environment ${named.colour}` }, named.name), element("environment"));
  field.placeholder = t("search");
  field.setAttribute("aria-label", t("search"));
  const { name: city, offset } = zone();
  element("foot").textContent = t("zoneNote", city === offset ? offset : `${city} (${offset})`);
  render([
    h("span", { class: "soft small zone" }, offset),
    userName() ? h("span", { class: "soft small user", title: t("loggedIn") }, userName())
      : hasToken() && h("button", { type: "button", onclick: () => { dropToken(); location.reload(); } }, t("signOut")),
    h("button", { type: "button", title: t("theme"), "aria-label": t("theme"), onclick: switchTheme }, "◐"),
    h("button", { type: "button", onclick: () => { switchLanguage(); show(); } }, t("language")),
  ], element("tools"));
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  show();
}

element("search").addEventListener("submit", showingErrors(async (event) => {
  event.preventDefault();
  const [asked, from] = [field.value.trim(), visit];
  if (!asked) return;
  const wanted = wantedOf(asked);
  const isForId = Object.keys(wanted).join() === "id";
  const found = isForId && (!may("find") || await isJob(wanted.id)) ? jobPlace(wanted.id) : searchPlace(wanted);
  if (from === visit && asked === field.value.trim()) goTo(found); // else the user has gone elsewhere, or searches for something else
}));

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  field.select();
});

async function isJob(id) {
  try {
    return await call("get", { id }) !== null;
  } catch {
    return false; // it may be part of an id; if the server has a problem, the next page says so
  }
}

element("skip").addEventListener("click", (event) => { event.preventDefault(); element("content").focus(); }); // its # is not a page
addEventListener("hashchange", () => {
  visit += 1;
  show();
  if (!SEARCHED.includes(place()[0])) field.value = "";
  element("content").focus();
});
addEventListener(CHANGED, show);
const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
render(h(Banner), element("banner"));
await learn();
show();

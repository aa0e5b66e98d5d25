// Formats numbers, times and durations, and parses durations.

import { current, t } from "./i18n.js";

const locale = () => (current() === "zh" ? "zh-CN" : "en-GB");
const UNITS = { s: 1, m: 60, h: 3600, d: 86400 };

/** 1234567 -> 1,234,567 */
export const number = (value) => (value === null || value === undefined ? "–" : new Intl.NumberFormat(locale()).format(value));

/** A number a second, to two digits below 10 and to whole ones above: 0.25, 3.4, 1,250. */
export const perSecond = (value) => number(Number(value < 10 ? value.toPrecision(2) : value.toFixed(0)));

/** "1 job", "5 jobs" */
export const jobs = (count) => (count === 1 ? t("oneJob") : t("jobs", number(count)));

/** Unix seconds in the zone of the browser, as 2026-11-23 04:45:40; "" for null and for what is no time. */
export function time(seconds) {
  if (seconds === null || Number.isNaN(new Date(seconds * 1000).getTime())) return "";
  const shifted = new Date(seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60000);
  return shifted.toISOString().slice(0, 19).replace("T", " ");
}

/** The time of the day only: 04:45:40. */
export const clock = (seconds) => time(seconds).slice(11);

/** The time of the day, if it is today's, else with its date. */
export const todaysClock = (seconds) => (time(seconds).slice(0, 10) === time(Date.now() / 1000).slice(0, 10) ? clock(seconds) : time(seconds));

/** The zone of all times on the page: its name, and how far ahead of UTC it is now, as UTC+8. */
export function zone() {
  const minutes = -new Date().getTimezoneOffset();
  const rest = Math.abs(minutes) % 60;
  const offset = minutes ? `UTC${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${rest}` : ""}` : "UTC";
  return { name: Intl.DateTimeFormat().resolvedOptions().timeZone, offset };
}

/** What time() shows, or the beginning of it, as Unix seconds; null for "". Throws an error that says what a time looks like. */
export function moment(text) {
  if (!text.trim()) return null;
  const parts = /^\s*(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?\s*$/.exec(text);
  const unix = parts ? new Date(parts[1], parts[2] - 1, ...parts.slice(3).map((part) => part || 0)).getTime() / 1000 : NaN;
  // a date that does not exist, such as 2026-02-30, is taken for a later one
  if (!parts || !time(unix).startsWith(text.trim().replace("T", " "))) throw new Error(t("badTime", text));
  return unix;
}

const CHINESE = { d: "天", h: "小时", m: "分", s: "秒" };

/** A duration in its two largest units: 1d 2h, 3m 20s, 40 ms; without blanks in Chinese. */
export function length(seconds) {
  const isChinese = current() === "zh";
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)}${isChinese ? "毫秒" : " ms"}`;
  if (seconds < 60) return `${Number(seconds.toFixed(1))}${isChinese ? "秒" : " s"}`;
  let rest = Math.round(seconds);
  const shown = [];
  for (const [unit, size] of Object.entries(UNITS).reverse()) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) shown.push(`${count}${isChinese ? CHINESE[unit] : unit}`);
  }
  return shown.slice(0, 2).join(isChinese ? "" : " ");
}

/** A duration as seconds() reads it, with nothing rounded off: 90m, 1.5s. */
export function exactly(seconds) {
  const [unit, size] = Object.entries(UNITS).reverse().find(([, one]) => seconds >= one && seconds % one === 0) || ["s", 1];
  return `${seconds / size}${unit}`;
}

/** "in 5m", "3s ago" */
export function relative(seconds) {
  const away = seconds - Date.now() / 1000;
  const rough = Math.abs(away) < 1 ? Math.abs(away) : Math.round(Math.abs(away)); // tenths only flicker
  const word = length(rough);
  if (current() === "zh") return away >= 0 ? `${word}后` : `${word}前`;
  return away >= 0 ? `in ${word}` : `${word} ago`;
}

/** Bytes: 1.5 GB */
export function bytes(count) {
  if (count === null || count === undefined) return "–";
  const names = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (count >= 1000 && power < names.length - 1) { count /= 1000; power += 1; }
  return `${Number(count.toFixed(count < 10 && power ? 1 : 0))} ${names[power]}`;
}

/** "10m" -> 600. Throws an error that says what a duration looks like. */
export function seconds(text) {
  const parts = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$/.exec(text);
  if (!parts) throw new Error(t("badLength", text));
  return parts[2] === "ms" ? parts[1] / 1000 : parts[1] * UNITS[parts[2] || "s"];
}

/** [the value of a JSON text], or [undefined, why it is not JSON]. */
export function parsed(text) {
  try {
    return [JSON.parse(text)];
  } catch (error) {
    return [undefined, error.message];
  }
}

/** The line of a message that says what happened, as in /buried: the first one, or the last one of Python's traceback. */
export function reasonLine(message) {
  const lines = message.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines[0]?.startsWith("Traceback (") ? lines.at(-1) : lines[0];
}

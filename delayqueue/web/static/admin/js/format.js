// Formats numbers, times and durations, and parses durations.

import { current, t } from "./i18n.js";

const locale = () => (current() === "zh" ? "zh-CN" : "en-GB");
const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };

/** 1234567 -> 1,234,567 */
export const number = (value) => (value === null || value === undefined ? "–" : new Intl.NumberFormat(locale()).format(value));

/** "1 job", "5 jobs" */
export const jobs = (count) => (count === 1 ? t("oneJob") : t("jobs", number(count)));

/** Unix seconds as date and time; "" for null. */
export function time(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const options = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  return new Intl.DateTimeFormat(locale(), options).format(seconds * 1000);
}

/** A duration in its two largest units: 1d 2h, 3m 20s, 40 ms. */
export function length(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  const parts = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  let rest = Math.round(seconds);
  const shown = [];
  for (const [unit, size] of parts) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) shown.push(`${count}${unit}`);
  }
  return shown.slice(0, 2).join(" ");
}

/** "in 5m", "3s ago" */
export function relative(seconds) {
  const away = seconds - Date.now() / 1000;
  const word = length(Math.abs(away));
  if (current() === "zh") return away >= 0 ? `${word} 后` : `${word} 前`;
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
  return Number(parts[1]) * UNITS[parts[2] || "s"];
}

/** Unix seconds -> the value of a datetime-local input, and back. */
export function localTime(unix) {
  const shifted = new Date(unix * 1000 - new Date(unix * 1000).getTimezoneOffset() * 60000);
  return shifted.toISOString().slice(0, 19);
}
export const unixTime = (value) => (value ? new Date(value).getTime() / 1000 : null);

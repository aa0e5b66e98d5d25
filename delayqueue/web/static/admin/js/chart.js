// Charts with uPlot, in the colours of the theme.

import { Component, h } from "./dom.js";
import { length, number, time } from "./format.js";
import { current } from "./i18n.js";

/* global uPlot */

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// the label of a tick, by the seconds between two ticks
function moment(unix, apart) {
  const [date, clock] = time(unix).split(" ");
  if (apart < 60) return clock;
  return apart < 86400 && !clock.startsWith("00:00") ? clock.slice(0, 5) : date.slice(5);
}

// there are no half jobs
const WHOLE = [1, 2, 5, 10, 20, 50].flatMap((step) => [1, 1e2, 1e4, 1e6, 1e8].map((power) => step * power)).sort((one, other) => one - other);

// durations that people count in: no tick at 8m 20s
const DURATIONS = [...[0.001, 0.01, 0.1, 1].flatMap((unit) => [unit, 2 * unit, 5 * unit]), 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((minutes) => 60 * minutes),
  ...[1, 2, 6, 12, 24, 48, 120, 240, 720, 2400].map((hours) => 3600 * hours)];
const STEPS = new Map([[number, WHOLE], [length, DURATIONS]]); // between two ticks, by what formats them

function axes(values) {
  const common = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return [
    { ...common, size: 28, grid: { show: false }, space: 70, values: (_, ticks, __, ___, apart) => ticks.map((tick) => moment(tick, apart)) },
    { ...common, size: 56, values: (_, ticks) => ticks.map(values), incrs: STEPS.get(values) },
  ];
}

function create(element, options, data) {
  const width = () => Math.max(200, element.clientWidth);
  const plot = new uPlot({ width: width(), legend: { show: false }, ...options }, data, element);
  const observer = new ResizeObserver(() => plot.setSize({ width: width(), height: options.height }));
  observer.observe(element);
  plot.hooks.destroy = [() => observer.disconnect()];
  return plot;
}

/** An element that Preact leaves alone: draw(element, data) makes a chart in it, and updates it with new data. */
class Chart extends Component {
  componentDidMount() {
    this.plot = this.props.draw(this.element, this.props.data);
    this.plot.marks = this.props.marks;
  }

  shouldComponentUpdate({ data, marks }) {
    this.plot.marks = marks;
    this.plot.setData(data);
    return false;
  }

  componentWillUnmount() {
    this.plot.destroy();
  }

  render({ kind, label }) {
    return h("div", { class: kind, role: "img", "aria-label": label, ref: (element) => { this.element = element; } });
  }
}

/** A chart that is drawn again when the theme or the language of the page changes. */
const chart = (key, properties) => h(Chart, { key: `${key} ${colour("--text")} ${current()}`, ...properties });
const upwards = { range: (_, least, most) => [0, Math.max(1, most * 1.1)] };

/** Lines over time, with a point for each step, and marks for events. series: [[name, colour such as "--ready"]]; marks: [{at, lasted, kind, text}];
 *  data: [times, values or null, …]. The values at the pointer are shown beside it. */
export const past = (key, { label, step, marks, series, format }, data) => chart(`${key} ${step}`, {
  label, kind: "chart", data, marks, draw: (element, first) => create(element, {
    height: 220,
    cursor: { drag: { x: false, y: false } },
    scales: { y: upwards },
    axes: axes(format),
    series: [{}, ...series.map(([name, line]) => ({
      label: name, stroke: colour(line), width: 2, points: { size: 5, show: (plot, place) => plot.data[place].filter((value) => value !== null).length < 40 },
    }))],
    hooks: { draw: [drawMarks], ready: [addTip], setCursor: [(plot) => showTip(plot, step, series, format)] },
  }, first),
});

const MARK_COLOURS = { started: "--soft", outage: "--buried", failover: "--reserved", clock: "--buried", did: "--accent" };

/** A line at the time of each mark, and a band for how long it lasted. */
function drawMarks(plot) {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const place = (at) => Math.min(left + width, Math.max(left, plot.valToPos(at, "x", true)));
  ctx.save();
  for (const { at, lasted, kind } of plot.marks || []) {
    ctx.strokeStyle = ctx.fillStyle = colour(MARK_COLOURS[kind] || "--soft");
    ctx.globalAlpha = 0.2;
    ctx.fillRect(place(at), top, place(at + lasted) - place(at), height);
    ctx.globalAlpha = 0.8;
    ctx.setLineDash(kind === "started" || kind === "did" ? [2 * devicePixelRatio, 4 * devicePixelRatio] : []);
    ctx.beginPath();
    ctx.moveTo(place(at), top);
    ctx.lineTo(place(at), top + height);
    ctx.stroke();
  }
  ctx.restore();
}

function addTip(plot) {
  plot.tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  plot.over.append(plot.tip);
}

const NEAR = 3; // pixels: on a phone a step can be less than one

/** The values of the step at the pointer, and the marks in or near it. */
function showTip(plot, step, series, format) {
  const { idx, left } = plot.cursor;
  if (!plot.tip) return;
  plot.tip.hidden = idx === null || idx === undefined || left < 0;
  if (plot.tip.hidden) return;
  const start = plot.data[0][idx];
  const from = Math.min(start, plot.posToVal(left - NEAR, "x"));
  const to = Math.max(start + step, plot.posToVal(left + NEAR, "x"));
  const marks = (plot.marks || []).filter(({ at, lasted }) => at < to && at + lasted >= from);
  const rows = series.map(([name], place) => `${name} ${format(plot.data[place + 1][idx])}`);
  plot.tip.replaceChildren(...[time(start), ...rows, ...marks.map((mark) => mark.text)].map((text, place) =>
    Object.assign(document.createElement("div"), { textContent: text, className: place > rows.length ? "bad" : "" })));
  const isRight = left > plot.over.clientWidth / 2;
  Object.assign(plot.tip.style, { left: isRight ? "auto" : `${left + 12}px`, right: isRight ? `${plot.over.clientWidth - left + 12}px` : "auto" });
}

/** Bars over time, each `step` seconds wide. onclick gets the time at which the bar begins. */
export const bars = (label, step, data, format, onclick) => chart(step, {
  label, kind: "chart pointer", data, draw: (element, first) => {
    const plot = create(element, {
      height: 220,
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { range: (_, start, last) => [start, last + step] }, y: upwards },
      axes: axes(format),
      series: [{}, {
        stroke: colour("--delayed"), fill: colour("--delayed"), width: 0, points: { show: false },
        paths: uPlot.paths.bars({ size: [0.8, 60], align: 1 }),
      }],
    }, first);
    plot.over.addEventListener("click", () => {
      const at = plot.posToVal(plot.cursor.left, "x");
      const start = plot.data[0].findLast((time) => time <= at);
      if (start !== undefined) onclick(start);
    });
    return plot;
  },
});

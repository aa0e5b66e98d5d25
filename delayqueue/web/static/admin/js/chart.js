// Charts with uPlot, in the colours of the theme.

/* global uPlot */

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// what a tick says, by the seconds between two ticks
const pad = (value) => String(value).padStart(2, "0");
function moment(unix, apart) {
  const date = new Date(unix * 1000);
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  if (apart < 60) return `${clock}:${pad(date.getSeconds())}`;
  return apart < 86400 && clock !== "00:00" ? clock : `${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

function axes(values) {
  const common = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return [
    { ...common, size: 28, grid: { show: false }, space: 70, values: (_, ticks, __, ___, apart) => ticks.map((tick) => moment(tick, apart)) },
    { ...common, size: 56, values: (_, ticks) => ticks.map(values) },
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

/** Lines over time. series: [{name, colour: "--ready"}]; data: [times, values, …]. */
export function lines(element, series, data, format) {
  return create(element, {
    height: 200,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, least, most) => [0, Math.max(1, most * 1.1)] } },
    axes: axes(format),
    series: [{}, ...series.map((one) => ({ label: one.name, stroke: colour(one.colour), width: 2, points: { show: false } }))],
  }, data);
}

/** Bars over time, each from its time for `step` seconds. onclick gets the index of the bar. */
export function bars(element, times, step, counts, format, onclick) {
  const plot = create(element, {
    height: 220,
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { range: [times[0], times[times.length - 1] + step] },
      y: { range: (_, least, most) => [0, Math.max(1, most * 1.1)] },
    },
    axes: axes(format),
    series: [{}, {
      stroke: colour("--delayed"), fill: colour("--delayed"), width: 0, points: { show: false },
      paths: uPlot.paths.bars({ size: [0.8, 60], align: 1 }),
    }],
  }, [times, counts]);
  plot.over.addEventListener("click", () => {
    const index = barAt(plot, times);
    if (index !== null) onclick(index);
  });
  return plot;
}

/** The bar under the pointer: bars begin at their time. */
function barAt(plot, times) {
  const at = plot.posToVal(plot.cursor.left, "x");
  let index = null;
  times.forEach((start, place) => { if (start <= at) index = place; });
  return index;
}

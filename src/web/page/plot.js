// A plot of what became of requests over time.

import uPlot from "uplot";

const KINDS = ["banned", "refused", "held", "admitted"];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Draws a variant in an element; `look` is told the step that is clicked. */
export function plot(parent, {times, step}, variant, most, look) {
  // Each lies upon those after it, so the highest is drawn first.
  const columns = KINDS.map((_, from) => times.map((_, at) => KINDS.slice(from).reduce((sum, kind) => sum + variant[kind][at], 0)));
  // The last step has a length, too.
  const along = [...times, times.length * step];
  const data = [along, ...columns.map((column) => [...column, column.at(-1)])];
  const paths = uPlot.paths.stepped({align: 1});
  const axis = {stroke: colour("faint"), grid: {stroke: colour("line"), width: 0.5}, ticks: {stroke: colour("line")}};
  const settings = {
    width: Math.max(parent.clientWidth, 200),
    height: 170,
    legend: {show: false},
    cursor: {sync: {key: "variants"}, drag: {x: false, y: false}},
    scales: {x: {time: false}, y: {range: [0, most * 1.05 || 1]}},
    axes: [{...axis, size: 32, values: (_, ticks) => ticks.map((tick) => `${tick} s`)}, {...axis, size: 55}],
    series: [{}, ...KINDS.map((kind) => ({label: kind, paths, stroke: colour(kind), fill: colour(kind), width: 1, points: {show: false}}))],
  };
  const drawn = new uPlot(settings, data, parent);
  drawn.over.addEventListener("click", () => {
    const {left} = drawn.cursor;
    if (left >= 0) look(Math.min(Math.floor(drawn.posToVal(left, "x") / step), times.length - 1));
  });
  return drawn;
}

/** The most requests in a step, of all variants. */
export function highest(variants) {
  const sums = variants.filter((it) => !it.error).flatMap((it) => it.admitted.map((_, at) => KINDS.reduce((sum, kind) => sum + it[kind][at], 0)));
  return sums.reduce((most, sum) => Math.max(most, sum), 0);
}

// Plots the decisions over time.

import uPlot from "uplot";

const KINDS = ["banned", "refused", "held", "admitted"];

/** Distances between ticks in seconds, up to a day. */
const TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** A tick in the largest unit in which all of them are whole. */
function ticks(_, seconds) {
  const [unit, length] = [["h", 3600], ["min", 60], ["s", 1]].find(([, length]) => seconds.every((it) => it % length === 0)) ?? ["s", 1];
  return seconds.map((it) => `${it / length} ${unit}`);
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Draws a variant in an element. A click calls `select` with the number of the step. */
export function plot(parent, {times, step}, variant, most, select) {
  // Each series covers those that are drawn later, so the highest is drawn first.
  const columns = KINDS.map((_, from) => times.map((_, at) => KINDS.slice(from).reduce((sum, kind) => sum + variant[kind][at], 0)));
  // A stepped series needs the end of the last step, too.
  const along = [...times, times.length * step];
  const data = [along, ...columns.map((column) => [...column, column.at(-1)])];
  const paths = uPlot.paths.stepped({align: 1});
  const axis = {stroke: colour("faint"), grid: {stroke: colour("line"), width: 0.5}, ticks: {stroke: colour("line")}};
  const settings = {
    width: Math.max(parent.clientWidth, 200),
    height: parent.clientHeight,
    legend: {show: false},
    cursor: {sync: {key: "variants"}, drag: {x: false, y: false}},
    scales: {x: {time: false}, y: {range: [0, most * 1.05 || 1]}},
    axes: [{...axis, size: 32, incs: TICKS, values: ticks}, {...axis, size: 40}],
    series: [{}, ...KINDS.map((kind) => ({label: kind, paths, stroke: colour(kind), fill: colour(kind), width: 1, points: {show: false}}))],
  };
  const drawn = new uPlot(settings, data, parent);
  drawn.over.addEventListener("click", () => {
    const {left} = drawn.cursor;
    if (left >= 0) select(Math.min(Math.floor(drawn.posToVal(left, "x") / step), times.length - 1));
  });
  return drawn;
}

/** The most requests in a step, over all variants. */
export function highest(variants) {
  const sums = variants.filter((it) => !it.error).flatMap((it) => it.admitted.map((_, at) => KINDS.reduce((sum, kind) => sum + it[kind][at], 0)));
  return sums.reduce((most, sum) => Math.max(most, sum), 0);
}

// Shows the result: for each algorithm a plot and counts, the requests of one interval, and the explanation of one request.

import {element, options, table} from "./element.js";
import {highest, plot} from "./plot.js";
import {ALGORITHMS, ORIGINAL} from "./state.js";

const title = (algorithm) => algorithm === ORIGINAL ? "the original" : ALGORITHMS.find(([name]) => name === algorithm)?.[1] ?? algorithm;
const percent = (part, all) => (all === 0 ? "0 %" : `${((100 * part) / all).toFixed(1)} %`);
const get = (id) => document.getElementById(id);

/** The parts of the page with a result. */
const PARTS = ["variants", "inspect"];

/** Manages what the page shows of a result. `core` has the functions `requests` and `why` of the module. */
export function result(core) {
  let shown = null;
  let plots = [];
  const select = (step) => {
    get("moment").value = step * shown.answer.step;
    list();
  };
  const list = () => {
    const {question, answer} = shown;
    const from = Number(get("moment").value);
    const found = JSON.parse(core.requests(question, get("algorithm").value, from, from + answer.step));
    get("interval").textContent = `${from.toFixed(2)} s to ${(from + answer.step).toFixed(2)} s`;
    get("why").replaceChildren();
    get("requests").replaceChildren(found.error ? found.error : listed(found, core, shown));
  };
  get("moment").oninput = list;
  get("algorithm").onchange = list;
  const draw = () => {
    plots.forEach((it) => it.destroy());
    const {answer} = shown;
    const most = highest(answer.variants);
    plots = answer.variants.filter((it) => !it.error).map((it) => plot(get(`plot-${it.algorithm}`), answer, it, most, (step) => {
      get("algorithm").value = it.algorithm;
      select(step);
    }));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
  let width = 0;
  new ResizeObserver(() => {
    if (shown && get("variants").clientWidth !== width) {
      width = get("variants").clientWidth;
      draw();
    }
  }).observe(get("variants"));
  return {
    /** Shows the answer to a question about traffic that lasts so many seconds. */
    show(question, answer, seconds) {
      shown = {question, answer};
      for (const part of PARTS) get(part).classList.remove("stale");
      width = get("variants").clientWidth;
      get("summary").className = "";
      get("summary").textContent = `${answer.requests} requests in ${seconds} s. Each bar is ${answer.step} s.${unreadable(answer.log)}`;
      get("variants").replaceChildren(...answer.variants.map(variant));
      const good = answer.variants.filter((it) => !it.error);
      get("inspect").hidden = good.length === 0;
      draw();
      if (good.length === 0) return;
      const chosen = get("algorithm").value;
      options(get("algorithm"), good.map((it) => [it.algorithm, title(it.algorithm)]));
      get("algorithm").value = good.some((it) => it.algorithm === chosen) ? chosen : good[0].algorithm;
      get("moment").max = answer.times.at(-1);
      get("moment").step = answer.step;
      const {refused} = good.find((it) => it.algorithm === get("algorithm").value);
      select(refused.indexOf(refused.reduce((most, count) => Math.max(most, count), 0)));
    },
    /** Shows why there is no new result. The last one stays, in grey. */
    fail(why) {
      get("summary").className = "problem";
      get("summary").textContent = shown ? `${why} Below is the last result.` : why;
      for (const part of PARTS) get(part).classList.add("stale");
    },
  };
}

function unreadable({lines, bad, why}) {
  return bad > 0 ? ` ${bad} of ${lines} lines of the log cannot be read, first ${why}.` : "";
}

function variant({algorithm, error, total, longestWait, rules}) {
  const name = element("h3", {}, title(algorithm));
  if (error) return element("article", {}, name, element("p", {className: "problem"}, error));
  const {admitted, held, refused, banned} = total;
  const all = admitted + held + refused + banned;
  const delay = held > 0 ? `, longest delay ${longestWait.toFixed(2)} s` : "";
  const headline = `${admitted + held} of ${all} admitted (${percent(admitted + held, all)})${delay}`;
  const counts = [["admitted", admitted, "admitted at once"], ["held", held, "delayed, then admitted"], ["refused", refused, "refused"], ["banned", banned, "banned"]];
  const words = counts.map(([, count, text]) => `${count} ${text}`).join(", ");
  const rows = rules.map(({rule, counts}) => [rule, `${counts.held}`, `${counts.refused}`, `${counts.banned}`]);
  return element("article", {}, element("div", {className: "heading"}, name, element("p", {}, headline)),
    element("ul", {className: "counts"}, ...counts.map(([kind, count, text]) => element("li", {className: kind}, element("strong", {}, `${count}`), ` ${text}`))),
    element("div", {className: "plot", id: `plot-${algorithm}`, role: "img", "aria-label": `Requests over time, ${title(algorithm)}: ${words}`}),
    ...(rows.length > 0 ? [table(`Decisions per rule, ${title(algorithm)}`, ["rule", "delayed", "refused", "banned"], rows)] : []));
}

function listed({requests, most}, core, {question}) {
  if (requests.length === 0) return element("p", {}, "No request arrived in this time.");
  const rows = requests.map((it) => {
    const explain = () => get("why").replaceChildren(explanation(JSON.parse(core.why(question, get("algorithm").value, it.number))));
    const button = element("button", {type: "button", onclick: explain, "aria-label": `Why was request ${it.number + 1} ${it.decision}?`}, "Why?");
    return [`${it.time.toFixed(3)} s`, it.decision, button, it.request, it.address ?? "unknown", it.rule ?? "", it.more];
  });
  const caption = requests.length === most ? `The first ${most} requests of this time` : "Requests of this time";
  return table(caption, ["time", "decision", "explanation", "request", "address", "rule", "details"], rows);
}

function explanation({error, time, method, path, address, headers, rules}) {
  if (error) return element("p", {className: "problem"}, error);
  const pairs = [["request", `${method} ${path}, at ${time.toFixed(3)} s, from ${address ?? "an unknown address"}`], ...headers.map(([name, value]) => [name, value])];
  const lines = pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  const rows = rules.map((it) => [it.rule, it.why ? `${it.decision}: ${it.why}` : it.decision, it.limit === undefined ? "" : `${it.remaining} of ${it.limit}`, it.wait === undefined ? "" : `${it.wait}`, it.scope ?? "", it.mode ?? ""]);
  return element("div", {}, element("h3", {}, "Explanation"), element("dl", {}, ...lines), table("The decision of each rule", ["rule", "decision", "remaining", "wait, s", "scope", "mode"], rows));
}

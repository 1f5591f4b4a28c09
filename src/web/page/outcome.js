// What becomes of the traffic: a plot and the numbers of each variant, the requests of one moment, and why.

import {element, options, table} from "./element.js";
import {highest, plot} from "./plot.js";
import {ALGORITHMS} from "./state.js";

const named = (algorithm) => ALGORITHMS.find(([name]) => name === algorithm)?.[1] ?? algorithm;
const share = (part, all) => (all === 0 ? "0 %" : `${((100 * part) / all).toFixed(1)} %`);
const at = (id) => document.getElementById(id);

/** Shows outcomes, and asks the core (`requests`, `why`) for more of them. */
export function outcome(core) {
  let shown = null;
  let plots = [];
  const look = (step) => {
    at("moment").value = step * shown.answer.step;
    moment();
  };
  const moment = () => {
    const {question, answer} = shown;
    const from = Number(at("moment").value);
    const told = JSON.parse(core.requests(question, at("by").value, from, from + answer.step));
    at("moment-told").textContent = `${from.toFixed(2)} s to ${(from + answer.step).toFixed(2)} s`;
    at("why").replaceChildren();
    at("requests").replaceChildren(told.error ? told.error : listed(told, core, shown));
  };
  at("moment").oninput = moment;
  at("by").onchange = moment;
  const draw = () => {
    plots.forEach((it) => it.destroy());
    const {answer} = shown;
    const most = highest(answer.variants);
    plots = answer.variants.filter((it) => !it.error).map((it) => plot(at(`plot-${it.algorithm}`), answer, it, most, (step) => {
      at("by").value = it.algorithm;
      look(step);
    }));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
  let width = 0;
  new ResizeObserver(() => {
    if (shown && at("variants").clientWidth !== width) {
      width = at("variants").clientWidth;
      draw();
    }
  }).observe(at("variants"));
  return {
    /** Shows the answer to a question. */
    show(question, answer) {
      shown = {question, answer};
      width = at("variants").clientWidth;
      at("summary").className = "";
      at("summary").textContent = `${answer.requests} requests, shown in steps of ${answer.step} s.${pasted(answer.log)}`;
      at("variants").replaceChildren(...answer.variants.map(variant));
      const fine = answer.variants.filter((it) => !it.error);
      at("look").hidden = fine.length === 0;
      draw();
      if (fine.length === 0) return;
      const chosen = at("by").value;
      options(at("by"), fine.map((it) => [it.algorithm, named(it.algorithm)]));
      at("by").value = fine.some((it) => it.algorithm === chosen) ? chosen : fine[0].algorithm;
      at("moment").max = answer.times.at(-1);
      at("moment").step = answer.step;
      const {refused} = fine.find((it) => it.algorithm === at("by").value);
      look(refused.indexOf(refused.reduce((most, count) => Math.max(most, count), 0)));
    },
    /** Says why there is nothing to show. */
    fail(why) {
      shown = null;
      at("summary").className = "problem";
      at("summary").textContent = why;
      at("variants").replaceChildren();
      at("look").hidden = true;
    },
  };
}

function pasted({lines, bad, why}) {
  return bad > 0 ? ` ${bad} of ${lines} lines of the log tell of no request, such as ${why}.` : "";
}

function variant(it) {
  const title = element("h3", {}, named(it.algorithm));
  if (it.error) return element("article", {}, title, element("p", {className: "problem"}, it.error));
  const {admitted, held, refused, banned} = it.total;
  const all = admitted + held + refused + banned;
  const words = `${admitted + held} of ${all} admitted (${share(admitted + held, all)}), ${held} of them held${held > 0 ? `, for ${it.longestWait.toFixed(2)} s at most` : ""}; ${refused} refused, ${banned} banned.`;
  const rows = it.rules.map(({rule, counts}) => [rule, `${counts.held}`, `${counts.refused}`, `${counts.banned}`]);
  return element("article", {}, title, element("p", {}, words),
    element("div", {className: "plot", id: `plot-${it.algorithm}`, role: "img", "aria-label": `Plot over time, ${named(it.algorithm)}: ${words}`}),
    ...(rows.length > 0 ? [table(`Decided by which rule, ${named(it.algorithm)}`, ["rule", "held", "refused", "banned"], rows)] : []));
}

function listed({requests, most}, core, {question}) {
  if (requests.length === 0) return element("p", {}, "No request came then.");
  const rows = requests.map((it) => {
    const ask = () => at("why").replaceChildren(explained(JSON.parse(core.why(question, at("by").value, it.number))));
    const button = element("button", {type: "button", onclick: ask, "aria-label": `Why was request ${it.number + 1} ${it.decision}?`}, "Why?");
    return [`${it.time.toFixed(3)} s`, it.request, it.address ?? "unknown", it.decision, it.rule ?? "", it.more, button];
  });
  const title = requests.length === most ? `The first ${most} requests of this moment` : "Requests of this moment";
  return table(title, ["time", "request", "from", "decision", "rule", "and", "ask"], rows);
}

function explained({error, time, method, path, address, headers, rules}) {
  if (error) return element("p", {className: "problem"}, error);
  const pairs = [["request", `${method} ${path}, at ${time.toFixed(3)} s, from ${address ?? "an unknown address"}`], ...headers.map(([name, value]) => [name, value])];
  const told = pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  const rows = rules.map((it) => [it.rule, it.why ? `${it.decision}: ${it.why}` : it.decision, it.limit === undefined ? "" : `${it.remaining} of ${it.limit}`, it.wait === undefined ? "" : `${it.wait}`, it.scope ?? "", it.mode ?? ""]);
  return element("div", {}, element("h3", {}, "Why"), element("dl", {}, ...told), table("What each rule says", ["rule", "decision", "left", "wait, s", "scope", "mode"], rows));
}

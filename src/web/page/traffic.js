// The fields that say what traffic comes.

import {element, options} from "./element.js";
import {ALGORITHMS, KINDS, MOST, STREAM} from "./state.js";

const NUMBERS = ["seconds", "gateways", "workers", "seed"];
const METHODS = ["GET", "POST", "PUT", "DELETE"].map((name) => [name, name]);

/** Fields for a state, which they change; each change is told. */
export function traffic(state, changed) {
  for (const name of NUMBERS) {
    const field = document.getElementById(name);
    field.value = state[name];
    field.oninput = () => field.value !== "" && (state[name] = Number(field.value), changed());
  }
  const log = document.getElementById("log");
  log.value = state.log;
  log.oninput = () => {
    state.log = log.value;
    changed();
  };
  const streams = document.getElementById("streams");
  const draw = () => streams.replaceChildren(...state.streams.map((stream, number) => fields(state, stream, number, draw, changed)));
  document.getElementById("add").onclick = () => {
    if (state.streams.length === MOST) return;
    state.streams.push({...STREAM});
    draw();
    streams.lastElementChild.querySelector("select").focus();
    changed();
  };
  document.getElementById("algorithms").replaceChildren(...ALGORITHMS.map(([name, words]) => {
    const toggle = (event) => {
      const chosen = new Set(state.algorithms);
      chosen[event.target.checked ? "add" : "delete"](name);
      state.algorithms = ALGORITHMS.map(([own]) => own).filter((own) => chosen.has(own));
      changed();
    };
    return element("label", {}, element("input", {type: "checkbox", checked: state.algorithms.includes(name), onchange: toggle}), ` ${words}`);
  }));
  draw();
}

function fields(state, stream, number, draw, changed) {
  const set = (name, value) => {
    stream[name] = value;
    changed();
  };
  const numeric = (name, words, least) => element("label", {}, words,
    element("input", {type: "number", min: least, step: "any", value: stream[name], oninput: (event) => event.target.value !== "" && set(name, Number(event.target.value))}));
  const choice = (name, words, list) => {
    const select = element("select", {onchange: (event) => { set(name, event.target.value); if (name === "kind") { draw(); document.querySelectorAll("#streams select.kind")[number]?.focus(); } }});
    select.className = name;
    options(select, list);
    select.value = stream[name];
    return element("label", {}, words, select);
  };
  const words = (name, label, make) => element("label", {className: "wide"}, label, make({value: stream[name], oninput: (event) => set(name, event.target.value)}));
  const isBursts = stream.kind === "bursts";
  const remove = () => {
    state.streams.splice(number, 1);
    draw();
    document.getElementById("add").focus();
    changed();
  };
  const parts = [
    choice("kind", "Comes", KINDS),
    numeric("rate", isBursts ? "at once" : "a second", 0),
    ...(isBursts ? [numeric("every", "every … seconds", 0)] : []),
    numeric("callers", "callers", 1),
    numeric("takes", "takes ms", 0),
    choice("method", "method", METHODS),
    numeric("status", "answered", 100),
    words("path", "Path ({n} is the caller's number)", (it) => element("input", {type: "text", ...it})),
    words("headers", "Headers, one a line", (it) => element("textarea", {rows: 2, spellcheck: false, ...it})),
  ];
  return element("fieldset", {}, element("legend", {}, `Traffic ${number + 1}`), element("div", {className: "fields"}, ...parts),
    element("p", {}, element("button", {type: "button", onclick: remove}, `Remove traffic ${number + 1}`)));
}

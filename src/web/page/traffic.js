// The fields of the traffic: one line per source, with rarely needed fields folded away.

import {element, options} from "./element.js";
import {ALGORITHMS, KINDS, MOST, START, STREAM} from "./state.js";

const NUMBERS = ["seconds", "gateways", "workers", "seed"];
const METHODS = ["GET", "POST", "PUT", "DELETE"].map((name) => [name, name]);

/** Fills the fields from a state. Each edit changes the state and calls `changed`. */
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
  // What a link sets is not folded away.
  if (state.log !== "" || ["gateways", "workers"].some((name) => state[name] !== START[name])) document.getElementById("settings").open = true;
  if (state.algorithms.some((name) => name !== "")) document.getElementById("compare").open = true;
  const streams = document.getElementById("streams");
  const draw = () => streams.replaceChildren(...state.streams.map((stream, number) => source(state, stream, number, draw, changed)));
  document.getElementById("add").onclick = () => {
    if (state.streams.length === MOST) return;
    state.streams.push({...STREAM});
    draw();
    streams.lastElementChild.querySelector("input").focus();
    changed();
  };
  document.getElementById("algorithms").replaceChildren(...ALGORITHMS.map(([name, words]) => {
    const toggle = (event) => {
      const chosen = new Set(state.algorithms);
      chosen[event.target.checked ? "add" : "delete"](name);
      state.algorithms = ALGORITHMS.map(([own]) => own).filter((own) => chosen.has(own));
      changed();
    };
    return element("label", {}, element("input", {type: "checkbox", checked: state.algorithms.includes(name), onchange: toggle}), words);
  }));
  draw();
}

function source(state, stream, number, draw, changed) {
  const set = (name, value) => {
    stream[name] = value;
    changed();
  };
  const numeric = (name, least, properties = {}) => element("input", {
    ...properties, type: "number", min: least, step: "any", value: stream[name], oninput: (event) => event.target.value !== "" && set(name, Number(event.target.value)),
  });
  const choice = (name, list, properties = {}) => {
    const select = element("select", {...properties, onchange: (event) => set(name, event.target.value)});
    options(select, list);
    select.value = stream[name];
    return select;
  };
  const text = (name, kind, properties) => element(kind, {...properties, value: stream[name], oninput: (event) => set(name, event.target.value)});

  const unit = element("span");
  const gap = element("label", {}, numeric("every", 0, {"aria-label": "s between bursts"}), " s");
  const kind = choice("kind", KINDS, {"aria-label": "Distribution over time"});
  const adapt = () => {
    unit.textContent = stream.kind === "bursts" ? " requests every" : " requests per second";
    gap.hidden = stream.kind !== "bursts";
  };
  kind.addEventListener("change", adapt);
  adapt();

  const remove = () => {
    state.streams.splice(number, 1);
    draw();
    document.getElementById("add").focus();
    changed();
  };
  const more = element("details", {}, element("summary", {}, "More"), element("div", {className: "fields"},
    element("label", {}, "Method", choice("method", METHODS)),
    element("label", {}, "Response status", numeric("status", 100)),
    element("label", {}, "Response time, ms", numeric("takes", 0)),
    element("button", {type: "button", onclick: remove}, `Remove traffic ${number + 1}`),
    element("label", {className: "wide"}, "Name of the route, if it has one", text("route", "input", {type: "text", spellcheck: false})),
    element("label", {className: "wide"}, "Headers, one per line", text("headers", "textarea", {rows: 2, spellcheck: false})),
    element("p", {className: "hint"}, "In the path and in headers, {n} is replaced by the number of the caller.")));
  return element("fieldset", {}, element("legend", {}, `Traffic ${number + 1}`), element("div", {className: "line"},
    element("label", {}, numeric("rate", 0), unit), gap, kind,
    element("label", {}, "from ", numeric("callers", 1), " callers"),
    element("label", {className: "path"}, "to", text("path", "input", {type: "text", "aria-label": "to path"})), more));
}

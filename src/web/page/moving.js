// Converts pasted limits of ingress-nginx and nginx.

import {element} from "./element.js";

const get = (id) => document.getElementById(id);

/** The lists of what the rules lack. */
function lists({gaps, inert}) {
  const list = (title, notes) => (notes.length === 0 ? [] : [element("p", {}, title), element("ul", {}, ...notes.map((note) => element("li", {}, note)))]);
  const all = [...list("Not in these rules:", gaps), ...list("Never had an effect:", inert)];
  return all.length === 0 ? ["The rules have all of its limits."] : all;
}

/** Manages the field for a pasted text. `convert` is a function of the module; `use` gets the text and its rules. */
export function moving(convert, use) {
  get("bring").onclick = () => {
    const text = get("original").value;
    const found = JSON.parse(convert(text));
    get("brought").className = found.error ? "problem" : "hint";
    get("brought").replaceChildren(...(found.error ? [found.error] : lists(found)));
    if (!found.error) use(text, found);
  };
  return {
    /** Shows a text, such as that of a link. */
    show(text) {
      get("original").value = text;
      if (text === "") get("brought").replaceChildren();
      else get("moving").open = true;
    },
  };
}

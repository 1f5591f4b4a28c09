// Builds elements of the page. Their content is always text, never markup.

/** Creates an element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

/** Fills a select with options, each given as `[value, text]`. */
export function options(select, list) {
  select.replaceChildren(...list.map(([value, text]) => element("option", {value}, text)));
}

/** Creates a table with a caption. Cells are text or elements. */
export function table(caption, head, rows) {
  const cells = (name, row) => row.map((cell) => element(name, {}, cell));
  const heading = element("tr", {}, ...head.map((cell) => element("th", {scope: "col"}, cell)));
  return element("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": caption},
    element("table", {}, element("caption", {}, caption), element("thead", {}, heading),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

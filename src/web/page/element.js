// Elements of the page. Whatever they say is text, never markup.

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

/** A choice among `[value, words]`. */
export function options(select, list) {
  select.replaceChildren(...list.map(([value, words]) => element("option", {value}, words)));
}

/** A table with a caption, rows of text. */
export function table(caption, head, rows) {
  const cells = (name, row) => row.map((cell) => element(name, {}, cell));
  const heading = element("tr", {}, ...head.map((cell) => element("th", {scope: "col"}, cell)));
  return element("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": caption},
    element("table", {}, element("caption", {}, caption), element("thead", {}, heading),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

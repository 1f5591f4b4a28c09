// Links from examples of rules into the playground, which the built book has beside it.

const link = (fragment) => {
  const made = document.createElement("a");
  // `path_to_root` is a variable of mdBook.
  made.href = `${path_to_root}../playground/index.html#${fragment}`;
  made.textContent = "Try it";
  made.className = "try";
  return made;
};

for (const code of document.querySelectorAll("code.language-yaml")) {
  const rules = code.textContent;
  if (!/^limits:|^- Url:|^  - Url:/m.test(rules)) continue;
  const bytes = new TextEncoder().encode(rules);
  const text = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  code.closest("pre").after(link(`rules=${text}`));
}

// Whole Envoys whose rules the playground offers, beside the documents of rules.
const envoys = ["envoy.yaml", "hot.yaml", "recipes/graphql.yaml"];
for (const file of document.querySelectorAll('a[href*="/envoy/"]')) {
  const example = file.href.split("/envoy/").pop();
  if (example.startsWith("examples/") || envoys.includes(example)) file.after(" ", link(`example=${example}`));
}

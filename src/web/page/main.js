// The playground: rules, traffic, and what becomes of it.

import PRESETS from "presets";
import {initSync, play, problems, requests, schema, why} from "./core/diana_web.js";
import MODULE from "./core/diana_web_bg.wasm";

import {editor} from "./editor.js";
import {options} from "./element.js";
import {pack, unpack} from "./link.js";
import {outcome} from "./outcome.js";
import {experiment, sound} from "./state.js";
import {traffic} from "./traffic.js";

/** Milliseconds after which what was typed is tried. */
const PAUSE = 200;

const said = document.getElementById("said");
initSync({module: MODULE});

/** What an example makes of a state. */
const example = ({rules, seconds, streams}, others) => sound({...others, seconds, streams, rules, log: ""}, rules);
const beginning = () => example(PRESETS[0], {});

async function opened() {
  const link = location.hash.slice(1);
  if (link === "") return beginning();
  try {
    return sound(await unpack(link), PRESETS[0].rules);
  } catch {
    said.textContent = "The link holds no experiment that can be read, so this is the first example.";
    return beginning();
  }
}

const state = await opened();
const shown = outcome({requests, why});
let timer;
/** Until then the address is that of what was tried before. */
let linked;
const changed = () => {
  clearTimeout(timer);
  timer = setTimeout(attempt, PAUSE);
};
const rules = editor(document.getElementById("editor"), JSON.parse(schema()), state.rules, (text) => {
  state.rules = text;
  changed();
});

function attempt() {
  const found = JSON.parse(problems(state.rules));
  rules.show(found, document.getElementById("problems"));
  linked = pack(state).then((link) => history.replaceState(null, "", `#${link}`));
  if (found.problems.length > 0) return shown.fail("The rules have problems.");
  if (state.algorithms.length === 0) return shown.fail("No algorithm is chosen.");
  const question = experiment(state);
  const answer = JSON.parse(play(question));
  if (answer.error) shown.fail(answer.error);
  else shown.show(question, answer);
}

traffic(state, changed);
const preset = document.getElementById("preset");
options(preset, [["", "…"], ...PRESETS.map(({name}, number) => [`${number}`, name])]);
preset.onchange = () => {
  if (preset.value === "") return;
  Object.assign(state, example(PRESETS[Number(preset.value)], state));
  traffic(state, changed);
  rules.put(state.rules);
  changed();
};
document.getElementById("traffic").onsubmit = (event) => event.preventDefault();
document.getElementById("copy").onclick = async () => {
  await linked;
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The browser does not let the page copy it: it is what stands in the address bar.";
  }
};
addEventListener("hashchange", () => location.reload());
attempt();
document.documentElement.dataset.ready = "yes";

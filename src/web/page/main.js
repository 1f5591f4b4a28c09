// The playground: rules, traffic, and the decision about each request.

import PRESETS from "presets";
import {convert, initSync, play, problems, requests, schema, why} from "./core/diana_web.js";
import PACKED from "./core/diana.gz";

import {editor} from "./editor.js";
import {options} from "./element.js";
import {pack, plain, unpack} from "./link.js";
import {moving} from "./moving.js";
import {result} from "./result.js";
import {STREAM, experiment, valid} from "./state.js";
import {traffic} from "./traffic.js";

/** Milliseconds without typing after which the experiment runs again. */
const PAUSE = 200;

const message = document.getElementById("message");
const preset = document.getElementById("preset");
initSync({module: await new Response(new Blob([PACKED]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()});

/** The state of an example. Settings which it leaves open are those of `others`. */
const example = ({rules, seconds, streams}, others) => valid({...others, seconds, streams, rules, original: "", log: ""}, rules);

options(preset, [["", "choose one"], ...PRESETS.map(({name}, number) => [`${number}`, name])]);

/** The state of rules of the book: traffic to the first path that they name. */
function told(rules) {
  const path = /^\s*(?:-\s*)?\{?\s*[Uu]rl:\s*([^\s,#]+)/m.exec(rules)?.[1] ?? "/";
  return valid({rules, streams: [{...STREAM, path: path.replace(/\{\w+\}|\*/g, "x")}]}, rules);
}

async function initial() {
  const link = location.hash.slice(1);
  const [kind, value] = link.split("=");
  const number = PRESETS.findIndex(({file}) => file !== undefined && file === value);
  if (kind === "example" && number >= 0) {
    preset.value = `${number}`;
    return example(PRESETS[number], {});
  }
  if (link !== "") {
    try {
      if (kind === "rules") return told(plain(value));
      return valid(await unpack(link), PRESETS[0].rules);
    } catch {
      message.textContent = "The link holds no readable experiment. This is the first example.";
    }
  }
  preset.value = "0";
  return example(PRESETS[0], {});
}

const state = await initial();
const shown = result({requests, why});
let timer;
/** Resolves when the address holds the state that ran last. */
let linked;
const changed = () => {
  delete document.documentElement.dataset.ready;
  clearTimeout(timer);
  timer = setTimeout(run, PAUSE);
};
const rules = editor(document.getElementById("editor"), JSON.parse(schema()), state.rules, (text) => {
  state.rules = text;
  changed();
});

/** Runs the experiment, after which the page shows the result of what its fields contain. */
function run() {
  refresh();
  document.documentElement.dataset.ready = "yes";
}

function refresh() {
  const found = JSON.parse(problems(state.rules));
  rules.show(found, document.getElementById("problems"));
  linked = pack(state).then((link) => history.replaceState(null, "", `#${link}`));
  if (found.problems.length > 0) return shown.fail("The rules have problems.");
  if (state.algorithms.length === 0) return shown.fail("Choose at least one algorithm.");
  const question = experiment(state);
  const answer = JSON.parse(play(question));
  if (answer.error) shown.fail(answer.error);
  else shown.show(question, answer, state.seconds);
}

/** Shows the state in the fields, and runs it. */
function replace(other) {
  Object.assign(state, other);
  traffic(state, changed);
  brought.show(state.original);
  rules.replace(state.rules);
  changed();
}

const brought = moving(convert, (original, found) => {
  const streams = [{...STREAM, kind: "bursts", rate: 20, every: 2, callers: 2, path: found.path, headers: [`host: ${found.host}`, ...found.headers.map((name) => `${name}: caller-{n}`)].join("\n")}];
  preset.value = "";
  replace(valid({...state, rules: found.rules, original, streams, log: ""}, found.rules));
});
brought.show(state.original);
traffic(state, changed);
preset.onchange = () => {
  if (preset.value === "") return;
  replace(example(PRESETS[Number(preset.value)], state));
};
document.getElementById("traffic").onsubmit = (event) => event.preventDefault();
document.getElementById("copy").onclick = async () => {
  await linked;
  try {
    await navigator.clipboard.writeText(location.href);
    message.textContent = "Copied.";
  } catch {
    message.textContent = "The browser does not allow copying. Copy the link from the address bar.";
  }
};
addEventListener("hashchange", () => location.reload());
run();

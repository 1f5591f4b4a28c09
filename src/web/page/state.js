// The state of the page, and the limits of what a link may set.

export const ALGORITHMS = [["", "as written"], ["W", "fixed window (W)"], ["SW", "sliding window (SW)"], ["TB", "token bucket (TB)"], ["LB", "leaky bucket (LB)"]];
/** The limits of a pasted configuration, beside the algorithms. */
export const ORIGINAL = "original";
export const KINDS = [["steady", "evenly"], ["poisson", "randomly"], ["bursts", "in bursts"]];

/** Most sources of traffic. */
export const MOST = 8;

export const STREAM = {kind: "poisson", rate: 8, every: 5, callers: 3, takes: 20, status: 200, method: "GET", path: "/", headers: "x-account-id: caller-{n}", route: ""};

export const START = {original: "", seconds: 30, gateways: 1, workers: 2, seed: 1, streams: [STREAM], log: "", algorithms: [""]};

const number = (value, fallback) => (Number.isFinite(value) ? value : fallback);
const text = (value, fallback) => (typeof value === "string" ? value : fallback);
const one = (list, value, fallback) => (list.some(([name]) => name === value) ? value : fallback);

function stream(given) {
  const from = Object(given);
  return {
    kind: one(KINDS, from.kind, STREAM.kind),
    rate: number(from.rate, STREAM.rate),
    every: number(from.every, STREAM.every),
    callers: number(from.callers, STREAM.callers),
    takes: number(from.takes, STREAM.takes),
    status: number(from.status, STREAM.status),
    method: text(from.method, STREAM.method),
    path: text(from.path, STREAM.path),
    headers: text(from.headers, STREAM.headers),
    route: text(from.route, STREAM.route),
  };
}

/** A valid state, with defaults in place of what is missing or of a wrong type. */
export function valid(given, rules) {
  const from = Object(given);
  const streams = Array.isArray(from.streams) ? from.streams.slice(0, MOST) : START.streams;
  const algorithms = Array.isArray(from.algorithms) ? ALGORITHMS.map(([name]) => name).filter((name) => from.algorithms.includes(name)) : [];
  return {
    rules: text(from.rules, rules),
    original: text(from.original, START.original),
    seconds: number(from.seconds, START.seconds),
    gateways: number(from.gateways, START.gateways),
    workers: number(from.workers, START.workers),
    seed: number(from.seed, START.seed),
    streams: streams.map(stream),
    log: text(from.log, START.log),
    algorithms: algorithms.length > 0 ? algorithms : START.algorithms,
  };
}

/** The experiment of a state, as JSON for the module. */
export function experiment(state) {
  const headers = (lines) => lines.split("\n").filter((line) => line.includes(":")).map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
  const traffic = state.streams.map((stream) => ({...stream, headers: headers(stream.headers)}));
  const {rules, original, log, seconds, gateways, workers, seed} = state;
  const algorithms = original === "" ? state.algorithms : [...state.algorithms, ORIGINAL];
  return JSON.stringify({rules, original, traffic, log, seconds, gateways, workers, seed, algorithms});
}

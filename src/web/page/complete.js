// Completions for the rules, from their JSON schema.

import {syntaxTree} from "@codemirror/language";

const SEQUENCES = ["BlockSequence", "FlowSequence"];
const MAPPINGS = ["BlockMapping", "FlowMapping"];

/** The path to a node: keys from the root on, and `null` for an element of a list. */
function steps(node, doc) {
  const path = [];
  for (let at = node; at; at = at.parent) {
    if (SEQUENCES.includes(at.name)) path.unshift(null);
    if (at.name === "Pair") path.unshift(key(at, doc));
  }
  return path;
}

function key(pair, doc) {
  const found = pair.getChild("Key");
  return found ? doc.sliceString(found.from, found.to).trim() : "";
}

function resolve(schema, root) {
  let at = schema;
  while (at?.$ref) at = at.$ref.slice(2).split("/").reduce((from, step) => from?.[step], root);
  return at;
}

/** A schema with all alternatives below it. */
function alternatives(schema, root) {
  const own = resolve(schema, root);
  if (!own) return [];
  const more = [...(own.oneOf ?? []), ...(own.anyOf ?? []), ...(own.allOf ?? [])];
  return [own, ...more.flatMap((it) => alternatives(it, root))];
}

function descend(schemas, step, root) {
  const below = schemas.flatMap((it) => {
    if (step === null) return it.items ? [it.items] : [];
    if (it.properties?.[step]) return [it.properties[step]];
    return typeof it.additionalProperties === "object" ? [it.additionalProperties] : [];
  });
  return below.flatMap((it) => alternatives(it, root));
}

function about(schema, root) {
  return alternatives(schema, root).find((it) => it.description)?.description;
}

/** Creates a source of completions for CodeMirror. */
export function completions(schema) {
  return (context) => {
    const {state, pos} = context;
    const word = context.matchBefore(/[\w-]*/);
    if (!context.explicit && word.from === word.to) return null;
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, word.from - line.from);
    // After a colon comes a value. Its key is on this line, in the innermost mapping.
    const valueOf = /([\w-]+):\s+$/.exec(before)?.[1];
    const node = syntaxTree(state).resolveInner(word.from, 1);
    const inside = enclosing(node, syntaxTree(state), state.doc, word.from, before);
    const schemas = inside.reduce((at, step) => descend(at, step, schema), alternatives(schema, schema));
    const options = valueOf === undefined ? keysOf(schemas, schema) : valuesOf(descend(schemas, valueOf, schema));
    return options.length > 0 ? {from: word.from, options, validFor: /^[\w-]*$/} : null;
  };
}

/** The path to the mapping around a position. Brackets decide first, then the indentation of lines. */
function enclosing(node, tree, doc, at, before) {
  for (let up = node; up; up = up.parent) {
    if (up.name === "FlowMapping" && up.from < at) return steps(up, doc);
  }
  const indent = /^[\s-]*/.exec(before)[0].length;
  const isItem = /^\s*-\s/.test(before);
  for (let number = doc.lineAt(at).number - (isItem ? 0 : 1); number > 0; number -= 1) {
    const line = doc.line(number);
    const text = line.text;
    if (/^\s*(#.*)?$/.test(text)) continue;
    const own = /^[\s-]*/.exec(text)[0].length;
    const dash = text.search(/\S/);
    if (!isItem && own === indent) return mapping(tree, line.from + own, doc);
    if (own < indent || (isItem && dash < indent && number < doc.lineAt(at).number)) {
      const found = steps(tree.resolveInner(line.from + own, 1), doc);
      return isItem ? [...found, null] : found;
    }
  }
  return isItem ? [null] : [];
}

function mapping(tree, at, doc) {
  for (let up = tree.resolveInner(at, 1); up; up = up.parent) {
    if (MAPPINGS.includes(up.name)) return steps(up, doc);
  }
  return [];
}

function keysOf(schemas, root) {
  const all = new Map(schemas.flatMap((it) => Object.entries(it.properties ?? {})));
  return [...all].map(([label, it]) => ({label, type: "property", apply: `${label}: `, info: about(it, root)}));
}

function valuesOf(schemas) {
  const words = schemas.flatMap((it) => [...(it.enum ?? []), ...(it.const === undefined ? [] : [it.const]), ...(it.type === "boolean" ? [true, false] : [])]);
  return [...new Set(words.map(String))].map((label) => ({label, type: "enum"}));
}

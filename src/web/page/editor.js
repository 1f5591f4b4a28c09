// The editor of the rules. It marks problems while the user types.

import {autocompletion, completionKeymap} from "@codemirror/autocomplete";
import {yaml, yamlLanguage} from "@codemirror/lang-yaml";
import {HighlightStyle, syntaxHighlighting} from "@codemirror/language";
import {lintGutter, setDiagnostics} from "@codemirror/lint";
import {EditorView, keymap} from "@codemirror/view";
import {tags} from "@lezer/highlight";
import {basicSetup} from "codemirror";

import {completions} from "./complete.js";
import {element} from "./element.js";

const COLOURS = HighlightStyle.define([
  {tag: tags.propertyName, color: "var(--focus)"},
  {tag: [tags.comment, tags.lineComment], color: "var(--faint)", fontStyle: "italic"},
  {tag: [tags.string, tags.attributeValue], color: "var(--text)"},
]);

const THEME = EditorView.theme({
  "&": {color: "var(--text)", backgroundColor: "var(--ground)"},
  ".cm-content": {caretColor: "var(--text)"},
  ".cm-cursor": {borderLeftColor: "var(--text)"},
  ".cm-gutters": {backgroundColor: "var(--card)", color: "var(--faint)", border: "none"},
  ".cm-activeLine, .cm-activeLineGutter": {backgroundColor: "color-mix(in srgb, var(--focus) 9%, transparent)"},
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": {backgroundColor: "color-mix(in srgb, var(--focus) 30%, transparent)"},
  ".cm-tooltip": {backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)"},
  ".cm-tooltip-autocomplete ul li[aria-selected]": {backgroundColor: "var(--focus)", color: "var(--ground)"},
  ".cm-completionInfo": {maxWidth: "20rem"},
});

/** Creates an editor in an element. Each edit calls `changed` with the whole text. */
export function editor(parent, schema, rules, changed) {
  const listener = EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString()));
  const view = new EditorView({
    parent,
    doc: rules,
    extensions: [
      basicSetup, yaml(), yamlLanguage.data.of({autocomplete: completions(schema)}), autocompletion(), keymap.of(completionKeymap),
      lintGutter(), syntaxHighlighting(COLOURS), THEME, EditorView.lineWrapping, listener,
      EditorView.contentAttributes.of({"aria-label": "Rules, in YAML", "aria-describedby": "problems", spellcheck: "false"}),
    ],
  });
  return {
    /** Replaces the text. */
    replace: (text) => view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}}),
    /** Marks problems in the text, and lists them in the element `list`. */
    show: (found, list) => show(view, found, list),
  };
}

function place(view, {line, column}) {
  const found = view.state.doc.line(Math.min(line, view.state.doc.lines));
  return Math.min(found.from + column - 1, found.to);
}

function show(view, {problems, more, advice}, list) {
  const marks = problems.map((problem) => {
    const from = place(view, problem);
    const word = /^[\w-]*/.exec(view.state.sliceDoc(from, from + 80))[0].length;
    return {from, to: from + word, severity: "error", message: problem.message};
  });
  view.dispatch(setDiagnostics(view.state, marks));
  const go = (problem) => () => {
    view.dispatch({selection: {anchor: place(view, problem)}, scrollIntoView: true});
    view.focus();
  };
  const items = problems.map((problem) =>
    element("li", {className: "problem"}, element("button", {type: "button", onclick: go(problem)}, `Line ${problem.line}: ${problem.message}`)));
  if (more > 0) items.push(element("li", {className: "problem"}, `and ${more} more`));
  if (items.length > 0) return list.replaceChildren(element("ul", {}, ...items));
  if (advice.length === 0) return list.replaceChildren("No problems.");
  // Folded, so that it does not push the result off a small screen.
  const lines = advice.map((line) => element("li", {className: "advice"}, line));
  const isOpen = list.querySelector("details")?.open ?? false;
  list.replaceChildren(element("details", {open: isOpen}, element("summary", {}, `No problems. Advice (${advice.length})`), element("ul", {}, ...lines)));
}

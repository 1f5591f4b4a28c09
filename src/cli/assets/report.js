"use strict";
// Data of a log is inserted as text, never as HTML.
(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const whole = new Intl.NumberFormat("en");
  const KINDS = [
    ["admitted", "admitted", "admitted"],
    ["held", "held", "held"],
    ["refused", "refused", "refused"],
    ["banned", "banned", "banned"],
    ["shadow_refused", "would refuse", "shadow"],
    ["shadow_held", "would hold", "shadow"],
  ];
  const COLUMNS = [
    ["consulted", "checked"], ["admitted", "admitted"], ["refused", "refused"], ["held", "held"], ["banned", "banned"],
    ["bans", "bans"], ["beside", "refused by others"], ["shadow_refused", "would refuse"], ["shadow_held", "would hold"],
    ["hot", "hot"],
  ];

  const add = (parent, name, text, className) => {
    const made = parent.appendChild(document.createElement(name));
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const plural = (count, one) => `${whole.format(count)} ${one}${count === 1 ? "" : "s"}`;
  const share = (part, all) => `${(all ? (part / all) * 100 : 0).toFixed(1)} %`;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const table = (parent, name, head, rows, wide) => {
    const box = add(parent, "div", undefined, "table");
    // If it is wider than the page, the keyboard can scroll it, too.
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", name);
    const made = add(box, "table");
    const top = add(add(made, "thead"), "tr");
    head.forEach((text) => add(top, "th", text).setAttribute("scope", "col"));
    const body = add(made, "tbody");
    rows.forEach((row) => {
      const line = add(body, "tr");
      row.forEach((cell, at) => add(line, "td", cell, at === wide ? "wide" : undefined));
    });
  };

  // Adds missing steps with zero counts, unless there are too many.
  const filled = (time, counts) => {
    const { step, begins } = time;
    const last = begins[begins.length - 1];
    if ((last - begins[0]) / step > 5000) return [begins, ...counts];
    const places = new Map(begins.map((at, place) => [at, place]));
    const all = [];
    for (let at = begins[0]; at <= last; at += step) all.push(at);
    const line = (of) => all.map((at) => (places.has(at) ? of[places.get(at)] : 0));
    return [all, ...counts.map(line)];
  };

  // In UTC, with the precision of the axis.
  const times = (_, instants, __, ___, step) => instants.map((at) => {
    const text = new Date(at * 1000).toISOString();
    if (step >= 86400) return text.slice(0, 10);
    return text.slice(11, step >= 60 ? 16 : 19) + (at % 86400 === 0 ? `\n${text.slice(0, 10)}` : "");
  });

  const plots = [];
  const plot = (parent, time, lines, name) => {
    const kinds = KINDS.filter(([kind]) => lines[kind]);
    if (kinds.length === 0 || time.begins.length === 0) return;
    const box = add(parent, "div", undefined, "plot");
    box.setAttribute("role", "img");
    const told = kinds.map(([kind, text]) => `${text} ${whole.format(lines[kind].reduce((sum, one) => sum + one, 0))}`);
    box.setAttribute("aria-label", `${name} over time: ${told.join(", ")}`);
    const data = filled(time, kinds.map(([kind]) => lines[kind]));
    const draw = () => {
      box.textContent = "";
      const [ink, line] = [colour("faint"), colour("line")];
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
      const series = kinds.map(([, text, kind]) => ({
        label: text,
        stroke: colour(kind),
        fill: `${colour(kind)}22`,
        width: 1.5,
        points: { show: data[0].length < 40 },
        value: (_, count) => (count === null ? "" : whole.format(count)),
      }));
      const options = {
        width: Math.max(box.clientWidth - 16, 200),
        height: 220,
        cursor: { sync: { key: "time" } },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        axes: [{ ...axis, space: 80, values: times }, { ...axis, size: 64, values: (_, counts) => counts.map((count) => whole.format(count)) }],
        scales: { y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.05] } },
        series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" }, ...series],
      };
      new uPlot(options, data, box);
    };
    plots.push(draw);
  };

  const side = (told) => {
    const part = add(main, "section");
    add(part, "h2", told.file);
    const { admitted, held, refused, banned } = told.all;
    const all = admitted + refused + banned;
    add(part, "p", `${whole.format(admitted)} admitted, ${whole.format(held)} of them after a delay; ` +
      `${whole.format(refused + banned)} refused (${share(refused + banned, all)}).`);
    plot(part, told.over_time, told.over_time.all, told.file);
    const columns = COLUMNS.filter(([key], at) => at < 3 || told.by_rule.some((rule) => rule[key] > 0));
    table(part, `Rules of ${told.file}`, ["rule", ...columns.map(([, text]) => text)],
      told.by_rule.map((rule) => [rule.rule, ...columns.map(([key]) => whole.format(rule[key]))]));
    const held_by = told.by_rule.filter((rule) => rule.waits);
    if (held_by.length > 0) {
      const second = (time) => `${time.toFixed(3)} s`;
      add(part, "h3", "Held");
      table(part, `Delays by ${told.file}`, ["rule", "50 % within", "95 % within", "99 % within", "longest"],
        held_by.map(({ rule, waits }) => [rule, ...["p50", "p95", "p99", "max"].map((key) => second(waits[key]))]));
    }
    const most = (title, callers, list) => {
      if (list.length === 0) return;
      add(part, "h3", `${title}, of ${plural(callers, "caller")}`);
      table(part, `${title} by ${told.file}`, ["caller", "rule", "refusals", "first", "last"],
        list.slice(0, 20).map((it) => [it.caller, it.rule, whole.format(it.times), it.first, it.last]), 0);
    };
    most("Most refused", told.refused_callers, told.refused_most);
    most("Most refused in shadow", told.shadow_refused_callers, told.shadow_refused_most);
    told.by_rule.filter((rule) => rule.consulted > 0).forEach(({ rule }) => {
      add(part, "h3", rule);
      plot(part, told.over_time, told.over_time.by_rule[rule], rule);
    });
  };

  const total = report.rules.all;
  const requests = total.admitted + total.refused + total.banned;
  document.getElementById("summary").textContent = `${plural(requests, "request")} from ${report.from} to ${report.to}, ` +
    `on ${plural(report.gateways, "gateway")} with ${plural(report.workers, "worker")}, in steps of ` +
    `${plural(report.rules.over_time.step, "second")}. Drag across a plot to zoom in, double-click to zoom out.`;
  report.notes.forEach((note) => add(document.getElementById("notes"), "li", note));
  side(report.rules);
  if (report.against) {
    side(report.against);
    const { neither, both, only_rules, only_against } = report.against.refused_by;
    add(main, "h2", "Where they differ");
    table(main, "Where they differ", ["refused by", "requests", "share"], [
      ["neither", neither], ["both", both], [`${report.rules.file} only`, only_rules],
      [`${report.against.file} only`, only_against],
    ].map(([text, count]) => [text, whole.format(count), share(count, requests)]));
  }
  const draw = () => plots.forEach((one) => one());
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) {
      width = innerWidth;
      draw();
    }
  });
})();

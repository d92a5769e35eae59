"use strict";
// A section per explanation: global bars, beeswarm, rows, one row, slopes. The report and the explorer share it.

TX.sections = {};

// open(row): called when a row is picked
TX.sections.explanation = (part, open = null) => {
  const rows = part.kept ? part.kept.length : part.rows;
  const features = part.features.length, outputs = part.outputs.length;
  const [values, gradient, errors, predictions, flags] =
    ["values", "gradient", "errors", "predictions", "flags"].map((name) => TX.unpack(part[name]));
  const data = part.data.map(TX.column);
  const shares = data.map(TX.ranks);
  const state = { output: 0, row: 0, feature: 0 };
  const slope = !part.shares;
  const label = (r) => (part.kept ? part.kept[r] : r);
  const cell = (array, r, f) => array[(r * features + f) * outputs + state.output];
  const prediction = (r) => predictions[r * outputs + state.output];
  const output = () => {
    const name = part.outputs[state.output];
    return part.scale === "raw" ? name : `${part.scale} of ${/^\d+$/.test(name) ? "class " : ""}${name}`;
  };
  const order = () => part.features.map((_, f) => f)
    .sort((a, b) => part.importance.mean[b][state.output] - part.importance.mean[a][state.output]);

  const overall = () => order().map((f) => ({
    name: part.features[f], feature: f, plain: true, value: part.importance.mean[f][state.output],
    low: part.importance.low[f][state.output], high: part.importance.high[f][state.output], picked: f === state.feature,
    words: `${part.features[f]}\nmean |value| ${TX.number(part.importance.mean[f][state.output])}\nmiddle half of the rows: ` +
      `${TX.number(part.importance.low[f][state.output])} to ${TX.number(part.importance.high[f][state.output])}`,
  }));
  const ofRow = (r) => part.features.map((name, f) => {
    const value = cell(values, r, f), error = errors ? cell(errors, r, f) : NaN;
    const doubt = Boolean(flags && flags[r * features + f]);
    return {
      name, detail: ` = ${TX.number(data[f][r])}`, feature: f, value, doubt, error: Number.isFinite(error) ? error : 0,
      words: `${name} = ${TX.number(data[f][r])}\nvalue ${TX.number(value, true)}` +
        (Number.isFinite(error) ? ` ± ${TX.number(error)}` : "") + `\nslope ${TX.number(cell(gradient, r, f), true)} per unit` +
        (doubt ? "\nthe model has a kink, a jump or noise here" : ""),
    };
  });

  const holders = ["bars", "swarm", "row", "cloud"].map((name) => TX.el("div", { class: name }));
  const charts = [
    (width) => {
      const items = overall();
      const folded = TX.fold(items, 16);
      const last = folded[folded.length - 1];
      if (last.folded) last.plain = true;
      return TX.bars(width, folded, { signed: false, pick: (item) => { if (!item.folded) pickFeature(item.feature); } });
    },
    (width) => TX.beeswarm(width, order().slice(0, 12).map((f) => ({
      name: part.features[f], feature: f, shares: shares[f], values: Array.from({ length: rows }, (_, r) => cell(values, r, f)),
    })), {
      words: (p) => { const f = order()[p.series]; return `row ${label(p.row)}\n${part.features[f]} = ${TX.number(data[f][p.row])}\nvalue ${TX.number(cell(values, p.row, f), true)}`; },
      pick: (p) => pickRow(p.row),
    }),
    (width) => {
      const items = ofRow(state.row);
      if (!items.every((item) => Number.isFinite(item.value))) return TX.el("p", { class: "message" }, "This row has no attributions.");
      return TX.waterfall(width, TX.fold(items, 12), { base: part.base[state.output], prediction: prediction(state.row), shares: !slope });
    },
    (width) => {
      const f = state.feature;
      const list = Array.from({ length: rows }, (_, r) => r);
      return TX.dependence(width, {
        xs: list.map((r) => data[f][r]), ys: list.map((r) => (slope ? prediction(r) : cell(values, r, f))),
        slopes: list.map((r) => cell(gradient, r, f)), fragile: list.map((r) => part.verdict[r] === "fragile"),
        xName: part.features[f], yName: slope ? output() : "attribution", picked: state.row, pick: (p) => pickRow(p.row),
        words: (p) => `row ${label(p.row)}\n${part.features[f]} = ${TX.number(data[f][p.row])}\n${output()} ${TX.number(prediction(p.row))}\nslope ${TX.number(cell(gradient, p.row, f), true)}`,
      });
    },
  ].map((draw, i) => TX.responsive(holders[i], draw));

  const lines = Array.from({ length: rows }, (_, r) => r);
  const strongest = (r) => { let best = 0; for (let f = 1; f < features; f++) if (Math.abs(cell(values, r, f)) > Math.abs(cell(values, r, best))) best = f; return best; };
  const table = TX.table([
    { label: "row", value: label, number: true, words: (r) => String(label(r)) },
    { label: "prediction", value: prediction, number: true },
    { label: "strongest feature", value: (r) => part.features[strongest(r)], words: (r) => part.features[strongest(r)] },
    { label: "its value", value: (r) => cell(values, r, strongest(r)), number: true },
    { label: "verdict", value: (r) => part.verdict[r], words: (r) => part.verdict[r], chip: true },
    { label: "why", value: (r) => part.reason[r], words: (r) => part.reason[r] },
  ], lines, { pick: (r) => pickRow(r), picked: (r) => r === state.row });
  const message = TX.el("div", { class: "message", role: "status" });
  const filter = TX.el("input", {
    type: "search", placeholder: `fragile, or ${TX.shorten(part.features[0], 20)} > 1`, "aria-label": "filter rows",
    oninput: () => {
      const test = TX.filter(filter.value, part.features, (r, f) => data[f][r], prediction,
        (r) => `${label(r)} ${part.verdict[r]} ${part.reason[r]} ${part.features[strongest(r)]}`);
      const some = lines.filter(test);
      message.textContent = filter.value ? `${some.length.toLocaleString("en")} of ${rows.toLocaleString("en")} rows` : "";
      table.show(some);
    },
  });

  const rowCard = TX.card("One row", holders[2]), rowTitle = rowCard.querySelector("h3");
  const featurePicker = TX.select("feature", part.features, (f) => pickFeature(f));
  const cloudCard = TX.card(slope ? "Prediction and slope" : "Attribution and slope", holders[3],
    TX.el("p", { class: "soft small" }, "The line through each point is the model's own slope there. Fragile rows are orange."));
  cloudCard.querySelector("header").append(featurePicker);
  const pickRow = (r) => { state.row = r; title(); table.refresh(); charts[2].redraw(); charts[3].redraw(); if (open) open(label(r)); };
  const pickFeature = (f) => { state.feature = f; featurePicker.selectedIndex = f; charts[0].redraw(); charts[3].redraw(); };
  const title = () => {
    const r = state.row, verdict = part.verdict[r];
    rowTitle.textContent = `Row ${label(r)}: ${output()} = ${TX.number(prediction(r))}`;
    let chip = rowCard.querySelector(".chip");
    if (!chip) rowCard.querySelector("header").append((chip = TX.el("span")));
    chip.className = "chip " + verdict;
    chip.textContent = [verdict, part.reason[r]].filter(Boolean).join(": ");
  };
  state.feature = order()[0];
  featurePicker.selectedIndex = state.feature;
  title();

  const chips = [`${part.rows.toLocaleString("en")} rows`, `${features} features`, `attribution: ${part.attribution}`, `scale: ${part.scale}`]
    .map((words) => TX.el("span", { class: "chip" }, words));
  for (const [verdict, count] of Object.entries(part.verdicts)) {
    if (count) chips.push(TX.el("span", { class: "chip " + verdict }, `${count.toLocaleString("en")} ${verdict}`));
  }
  const top = TX.el("div", { class: "chips" }, chips);
  if (outputs > 1) top.append(TX.select("output", part.outputs, (o) => {
    state.output = o; title(); table.refresh(); charts.forEach((chart) => chart.redraw());
  }));
  const rowsCard = TX.card("Rows", TX.el("div", { class: "tools" }, filter), message, table.node);
  return [top,
    part.kept ? TX.el("p", { class: "soft small" }, `To keep the page small it holds ${rows.toLocaleString("en")} of the ${part.rows.toLocaleString("en")} rows, evenly spaced; the bars are of all rows.`) : null,
    TX.el("div", { class: "grid" },
      TX.card("Which features matter", holders[0], TX.el("p", { class: "soft small" }, "Mean size of the attributions; thin line: middle half of the rows. Click a feature to see its slopes.")),
      TX.card("Every row, feature by feature", holders[1], TX.el("p", { class: "soft small" }, "One dot a row. Colour: the feature's value, low (blue) to high (orange). Click a dot to open its row.")),
      rowsCard, rowCard, cloudCard, TX.card("What was run", TX.facts(part.facts)))];
};

// "age > 40" compares a feature or the prediction; anything else is looked for as text.
TX.filter = (words, features, cell, prediction, text) => {
  const match = /^\s*(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+?)\s*$/.exec(words);
  const name = match && match[1].toLowerCase();
  const f = match ? features.findIndex((feature) => feature.toLowerCase() === name) : -1;
  if (!match || (f < 0 && name !== "prediction")) {
    const wanted = words.trim().toLowerCase();
    return (r) => text(r).toLowerCase().includes(wanted);
  }
  const against = Number(match[3]);
  const compare = {
    "<": (v) => v < against, ">": (v) => v > against, "<=": (v) => v <= against, ">=": (v) => v >= against,
    "=": (v) => (typeof v === "string" ? v === match[3] : Math.abs(v - against) <= 1e-6 * Math.abs(against)),
    "!=": (v) => !compare["="](v),
  };
  return (r) => compare[match[2]](f < 0 ? prediction(r) : cell(r, f));
};

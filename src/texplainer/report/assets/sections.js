"use strict";
// A section per explanation: its attributions side by side, each under its question. The report and the explorer share it.

TX.sections = {};

// One attribution of the section's rows, unpacked; `state` holds the output, the row and the feature in view.
TX.attributionOf = (found, part, state, data) => {
  const features = part.features.length, outputs = part.outputs.length;
  const [values, gradient, errors, flags, flat, base, relative_change] =
    ["values", "gradient", "errors", "flags", "flat", "base", "relative_change"].map((name) => TX.unpack(found[name]));
  const cell = (array, r, f) => (array ? array[(r * features + f) * outputs + state.output] : NaN);
  const mean = (f, which = "mean") => found.importance[which][f][state.output];
  return {
    ...found, gradient, relative_change, mean,
    value: (r, f) => cell(values, r, f), bound: (r, f) => cell(errors, r, f), isFlat: (r, f) => Boolean(flat && cell(flat, r, f)), slope: (r, f) => cell(gradient, r, f), base: (r) => base[r * outputs + state.output],
    order: () => part.features.map((_, f) => f).sort((a, b) => mean(b) - mean(a)),
    items: (r) => part.features.map((name, f) => TX.item(found, f, name, data[f][r], {
      value: cell(values, r, f), error: cell(errors, r, f), slope: cell(gradient, r, f), doubt: Boolean(flags && flags[r * features + f]),
    })),
    strongest: (r) => { let best = 0; for (let f = 1; f < features; f++) if (Math.abs(cell(values, r, f)) > Math.abs(cell(values, r, best))) best = f; return best; },
  };
};

// The cards of one attribution: which features matter, every row, one row, one feature.
const SWARMS = 12; // lines of a beeswarm
TX.attributionCards = (attribution, part, state, data, shares, { label, prediction, pickRow, pickFeature }) => {
  const rows = part.kept ? part.kept.length : part.rows;
  const list = Array.from({ length: rows }, (_, r) => r);
  const holders = ["bars", "swarm", "row", "cloud"].map((name) => TX.el("div", { class: name }));
  const notes = holders.map(() => TX.el("p", { class: "soft small what" }));
  const marked = (f) => (attribution.levels && attribution.levels[f] ? `${TX.LEVEL} ` : "") + part.features[f];
  const overall = () => attribution.order().map((f) => ({
    name: marked(f), feature: f, plain: true, value: attribution.mean(f), low: attribution.mean(f, "low"), high: attribution.mean(f, "high"), picked: f === state.feature,
    words: `${part.features[f]}\nmean absolute value ${TX.number(attribution.mean(f))}\nquartiles over rows: ${TX.number(attribution.mean(f, "low"))} to ${TX.number(attribution.mean(f, "high"))}`,
  }));
  // Of values that add up the smallest features are one line, in grey.
  const others = () => (attribution.adds_up && attribution.order().length > SWARMS ? attribution.order().slice(SWARMS - 1) : []);
  const rest = (far, r) => far.reduce((sum, f) => sum + attribution.value(r, f), 0);
  const swarms = () => {
    const far = others();
    const named = attribution.order().slice(0, SWARMS - Number(far.length > 0)).map((f) => ({
      name: marked(f), shares: shares[f], values: list.map((r) => attribution.value(r, f)),
    }));
    return far.length ? [...named, { name: `the other ${far.length}`, shares: null, values: list.map((r) => rest(far, r)) }] : named;
  };
  const dot = ({ row, series }) => {
    const far = others(), f = attribution.order()[series];
    const [head, value] = far.length && series === SWARMS - 1
      ? [`the other ${far.length} features`, rest(far, row)] : [`${part.features[f]} = ${TX.cellWords(data[f][row])}`, attribution.value(row, f)];
    return `row ${label(row)}\n${head}\n${TX.number(value, attribution.signed)}`;
  };
  const draws = [
    (width) => TX.bars(width, TX.fold(overall(), 16, attribution.adds_up), { signed: false, pick: (item) => { if (!item.folded) pickFeature(item.feature); } }),
    (width) => TX.beeswarm(width, swarms(), {
      words: dot,
      pick: (p) => pickRow(p.row),
    }),
    (width) => TX.drawRow(width, attribution, attribution.items(state.row), {
      base: attribution.base(state.row), prediction: prediction(state.row), logOdds: part.log_odds,
    }) || TX.el("p", { class: "message" }, "This row does not have attributions."),
    (width) => {
      const f = state.feature, steep = Boolean(attribution.gradient);
      return TX.dependence(width, {
        xs: list.map((r) => data[f][r]), ys: list.map((r) => (steep ? prediction(r) : attribution.value(r, f))),
        slopes: steep ? list.map((r) => attribution.slope(r, f)) : null, unstable: list.map((r) => attribution.stability[r] === "unstable"),
        xName: part.features[f], yName: steep ? part.quantities[state.output] : attribution.axis[state.output], picked: state.row, pick: (p) => pickRow(p.row),
        words: (p) => `row ${label(p.row)}\n${part.features[f]} = ${TX.cellWords(data[f][p.row])}\n${part.quantities[state.output]} ${TX.number(prediction(p.row))}\n` +
          (steep ? `slope ${TX.number(attribution.slope(p.row, f), true)}` : TX.number(attribution.value(p.row, f), attribution.signed)),
      });
    },
  ];
  const charts = draws.map((draw, i) => TX.responsive(holders[i], draw));
  const cards = holders.map((holder, i) => TX.card(attribution.question, notes[i], holder));
  const chip = TX.el("span");
  cards[2].querySelector("header").append(chip);
  const say = () => {
    const means = TX.meaning(attribution, state.output), r = state.row;
    const hidden = attribution.adds_up ? 0 : Math.max(0, part.features.length - 16);
    notes[0].textContent = `Mean absolute value over the rows; thin line: quartiles${hidden ? `; ${hidden} smaller features omitted` : ""}. ${TX.sentence(means)}.`;
    notes[1].textContent = `One dot per row; colour: the feature's value, low (blue) to high (orange), grey for categories. ${TX.sentence(means)}.`;
    notes[2].textContent = `Row ${TX.calm(String(label(r)))}: ${TX.calm(part.output_words[state.output])} ${TX.onBothScales(part, prediction(r))}. ${TX.sentence(means)}.`;
    notes[3].textContent = attribution.gradient ? "The line through each point is the model's slope there. Unstable rows are orange." : `${TX.sentence(means)}. Unstable rows are orange.`;
    TX.stability(chip, attribution.stability[r], attribution.relative_change[r], attribution.reason[r]);
  };
  say();
  return { cards, redraw: (...which) => { say(); (which.length ? which : [0, 1, 2, 3]).forEach((i) => charts[i].redraw()); } };
};

// open(row): called when a row is picked
TX.sections.explanation = (part, open = null) => {
  const rows = part.kept ? part.kept.length : part.rows;
  const outputs = part.outputs.length, predictions = TX.unpack(part.predictions);
  const data = part.data.map(TX.column);
  const shares = data.map((column, f) => (part.categorical[f] || part.data[f].levels ? null : TX.ranks(column)));
  const state = { output: 0, row: 0, feature: 0, sign: 1 };
  const position = (r) => (part.kept ? part.kept[r] : r);
  const label = (r) => (part.labels ? part.labels[r] : position(r));
  const byNumber = !part.labels || part.labels.every((one) => one.trim() !== "" && Number.isFinite(Number(one)));
  const prediction = (r) => predictions[r * outputs + state.output];
  const attributions = part.attributions.map((found) => TX.attributionOf(found, part, state, data));
  const first = attributions[0];
  const pickRow = (r) => { state.row = r; table.refresh(); all((one) => one.redraw(2, 3)); tell(); if (open) open(position(r)); };
  const pickFeature = (f) => { state.feature = f; featurePicker.selectedIndex = f; all((one) => one.redraw(0, 3)); };
  state.feature = first.order()[0];
  const parts = attributions.map((attribution) => TX.attributionCards(attribution, part, state, data, shares, { label, prediction, pickRow, pickFeature }));
  const all = (work) => parts.forEach(work);
  const featurePicker = TX.select("feature", part.features, (f) => pickFeature(f));
  featurePicker.selectedIndex = state.feature;
  parts[0].cards[3].querySelector("header").append(featurePicker);

  const lines = Array.from({ length: rows }, (_, r) => r);
  const table = TX.table([
    { label: "row", value: (r) => (byNumber ? Number(label(r)) : label(r)), number: byNumber, words: (r) => TX.shorten(String(label(r)), 30) },
    { label: "prediction", value: prediction, number: true, words: (r) => TX.onBothScales(part, prediction(r)) },
    { label: "strongest feature", value: (r) => part.features[first.strongest(r)], words: (r) => (first.levels && first.levels[first.strongest(r)] ? `${TX.LEVEL} ` : "") + part.features[first.strongest(r)] },
    { label: "its value", value: (r) => first.value(r, first.strongest(r)), number: true },
    { label: "relative change", value: (r) => first.relative_change[r], number: true, words: (r) => (Number.isFinite(first.relative_change[r]) ? TX.percent(first.relative_change[r]) : "") },
    { label: "stability", value: (r) => first.stability[r], words: (r) => first.stability[r], chip: true },
    { label: "why", value: (r) => first.reason[r], words: (r) => (first.reason[r].startsWith("the values change") ? "" : first.reason[r]) }, // said by the number
  ], lines, { pick: (r) => pickRow(r), picked: (r) => r === state.row });
  const message = TX.el("div", { class: "message", role: "status" });
  const filter = TX.el("input", {
    type: "search", placeholder: `row ${TX.shorten(String(label(0)), 20)}, unstable, or ${TX.shorten(part.features[Math.max(0, part.data.findIndex(({ levels }) => !levels))], 20)} > 1`, "aria-label": "find rows by identifier or condition",
    oninput: () => {
      const found = TX.find(filter.value, { names: part.features, rows: lines, label, cell: (r, f) => data[f][r], prediction, scale: part.scale,
        text: (r) => `${first.stability[r]} ${first.reason[r]} ${part.features[first.strongest(r)]}` });
      message.textContent = TX.calm(found.error || (filter.value.trim() ? `${found.rows.length.toLocaleString("en")} of ${rows.toLocaleString("en")} rows` : ""));
      table.show(found.rows);
    },
  });

  // One row: what was predicted, both columns, the reasons.
  const heading = TX.el("p", { class: "headline" }), told = TX.el("div"), why = TX.el("div", { class: "reasons" });
  const tell = () => {
    const r = state.row, column = (one) => ({ ...one, values: part.features.map((_, f) => one.value(r, f)), bounds: part.features.map((_, f) => one.bound(r, f)), flat: part.features.map((_, f) => one.isFlat(r, f)),
      stability: one.stability[r], reason: one.reason[r], relative_change: one.relative_change[r] });
    const row = { names: part.features, cells: data.map((cells) => cells[r]), categorical: part.categorical, typical: part.typical, missing: part.missing, columns: attributions.map(column) };
    rowCard.querySelector("h3").textContent = `Row ${TX.calm(String(label(r)))}`;
    heading.textContent = TX.calm(`${part.output_words[state.output]}: ${TX.onBothScales(part, prediction(r))}; base value: ${TX.baseWords(part, first.base(r))}`);
    told.replaceChildren(TX.rowTable(row, { pick: pickFeature }));
    why.replaceChildren(TX.reasonsTable(row, row.columns.find((column) => column.adds_up), state.sign));
    behind.replaceChildren(...curves(r));
  };
  // The curves of the row in view; a page holds those of some rows.
  const behind = TX.el("div", { class: "curves" });
  const curves = (r) => {
    if (!part.curves) return [TX.el("p", { class: "soft small note" }, "Not in this report: the curves need the model. Draw one with tx.plots.ice(explainer, row, feature), or write the report from what explainer(X) returns, with at most 3 outputs.")];
    const found = part.curves[r];
    if (!found) return [TX.el("p", { class: "soft small note" }, `Not for this row. The page holds the curves of the rows ${Object.keys(part.curves).map((one) => TX.shorten(String(label(Number(one))), 20)).join(", ")}. For others: explanation[rows].report(path), or tx.plots.ice(explainer, row, feature).`)];
    return [TX.el("p", { class: "soft small note" }, "The prediction as one feature takes other values and the others stay. Circle: the row; dashed: its slope over ±1 SD; strokes at the bottom: the background's values."),
      TX.el("div", { class: "grid" }, found[state.output].map((curve) => {
        const holder = TX.el("div");
        new ResizeObserver(() => { const width = holder.clientWidth; if (width && width !== Number(holder.dataset.width)) { holder.dataset.width = width; holder.replaceChildren(TX.curve(width, curve, part.quantities[state.output])); } }).observe(holder);
        holder.append(TX.curve(460, curve, part.quantities[state.output]));
        return holder;
      }))];
  };
  const rowCard = TX.card("Row", heading, told), reasonsCard = TX.card("Reasons", why), curvesCard = TX.card("The curves behind the numbers", behind);
  curvesCard.classList.add("wide", "curves-card");
  rowCard.classList.add("wide", "row-card");
  reasonsCard.classList.add("wide", "reasons-card");
  reasonsCard.querySelector("header").append(TX.select("direction of the reasons", ["toward a higher prediction", "toward a lower prediction"], (i) => { state.sign = i ? -1 : 1; tell(); }));

  const chips = [`${part.rows.toLocaleString("en")} rows`, `${part.features.length} features`].map((words) => TX.el("span", { class: "chip" }, words));
  for (const attribution of attributions) {
    chips.push(TX.el("span", { class: "chip" }, attribution.name));
    for (const [stability, count] of Object.entries(attribution.stability_labels)) {
      if (count) chips.push(TX.el("span", { class: "chip " + stability }, `${count.toLocaleString("en")} ${stability}`));
    }
  }
  const top = TX.el("div", { class: "chips" }, chips);
  if (outputs > 1) top.append(TX.select("output", part.quantities, (o) => { state.output = o; table.refresh(); all((one) => one.redraw()); tell(); }));
  const rowsCard = TX.card("Rows", TX.el("div", { class: "tools" }, filter), message, table.node,
    rows > 25 ? TX.el("p", { class: "printed soft small" }, `The first 25 of ${rows.toLocaleString("en")} rows; the file itself has all.`) : null);
  rowsCard.classList.add("wide", "rows-card");
  tell();
  const across = (i) => parts.map((one) => one.cards[i]);
  return [top,
    part.kept ? TX.el("p", { class: "soft small" }, `To keep the page small, it contains ${rows.toLocaleString("en")} of the ${part.rows.toLocaleString("en")} rows, evenly spaced.`) : null,
    part.missing ? TX.el("p", { class: "soft small missing" }, part.missing) : null,
    TX.el("div", { class: "grid" }, ...across(0), ...across(1), rowsCard, rowCard, reasonsCard, curvesCard, ...across(2), ...across(3), TX.card("What was run", TX.facts(part.facts)))];
};

// Rows by identifier, by a condition such as "age > 40", or by text; {rows, error}: a wrong condition is an error, not 0 rows.
TX.find = (words, { names, rows, label, cell, prediction, scale, text }) => {
  const wanted = words.trim(), wrong = (error) => ({ rows: [], error });
  if (!wanted) return { rows, error: "" };
  const match = /^(.+?)\s*(<=|>=|!=|==|=|<|>)\s*(.+)$/.exec(wanted);
  const own = rows.filter((r) => String(label(r)) === wanted.replace(/^row\s+/i, ""));
  if (own.length) return { rows: own, error: "" };
  if (!match) {
    const found = rows.filter((r) => `${label(r)} ${text(r)}`.toLowerCase().includes(wanted.toLowerCase()));
    return found.length ? { rows: found, error: "" } : wrong(`No row has the identifier “${wanted}”. A condition looks like: ${TX.shorten(names[0], 20)} > 1.`);
  }
  const [, name, sign, against] = match, extra = scale === "log-odds" ? ["prediction", "probability"] : ["prediction"];
  const known = [...names, ...extra], f = known.findIndex((one) => one.toLowerCase() === name.trim().toLowerCase());
  if (f < 0) return wrong(`“${name}” is not a feature. ${TX.nearest(name, known)}`);
  const value = (r) => (f < names.length ? cell(r, f) : known[f] === "probability" ? 1 / (1 + Math.exp(-prediction(r))) : prediction(r));
  const texts = new Set(rows.map(value).filter((v) => typeof v === "string")), equal = ["=", "==", "!="].includes(sign);
  if (texts.size && !equal) return wrong(`“${name}” holds text; compare it with = or !=.`);
  if (texts.size && !texts.has(against)) return wrong(`“${against}” is not a value of “${name}”. ${TX.nearest(against, [...texts])}`);
  const number = Number(against.replace(/^(.*)%$/, (_, share) => String(Number(share) / 100)));
  if (!texts.size && Number.isNaN(number)) return wrong(`“${name}” is numeric and “${against}” is not a number.`);
  const same = (v) => (texts.size ? v === against : Math.abs(v - number) <= 1e-6 * Math.abs(number));
  const test = { "<": (v) => v < number, ">": (v) => v > number, "<=": (v) => v <= number, ">=": (v) => v >= number, "=": same, "==": same, "!=": (v) => !same(v) }[sign];
  return { rows: rows.filter((r) => test(value(r))), error: "" };
};
// "Did you mean …?", or what there is.
TX.nearest = (word, known) => {
  const distance = (a, b) => {
    let line = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) next[j] = Math.min(next[j - 1] + 1, line[j] + 1, line[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      line = next;
    }
    return line[b.length];
  };
  const short = word.trim().toLowerCase().slice(0, 60);
  const best = known.map((one) => [distance(short, one.toLowerCase().slice(0, 60)), one]).sort((a, b) => a[0] - b[0])[0];
  if (best && best[0] <= Math.max(2, short.length / 3)) return `Did you mean “${TX.shorten(best[1], 60)}”?`;
  return `There are ${known.slice(0, 6).map((one) => TX.shorten(one, 30)).join(", ")}${known.length > 6 ? ", …" : ""}.`;
};

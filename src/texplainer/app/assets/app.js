"use strict";
// The explorer: pick a row, move its features, watch prediction, surrogate and attributions follow.

const TOKEN = sessionStorage.getItem("token") || "";

TX.ask = async (question, content = {}) => {
  let response;
  try {
    response = await fetch(`/api/${question}`, {
      method: "POST", headers: { "Content-Type": "application/json", "X-Token": TOKEN }, body: JSON.stringify(content),
    });
  } catch { throw new Error("The explorer does not respond. Is it still running?"); }
  if (response.ok) return response.json();
  const text = await response.text();
  let words = text;
  try { words = JSON.parse(text).message; } catch { /* a refusal is plain text */ }
  throw new Error(words || "The explorer could not process the request.");
};

// Only the newest question matters: while one is under way, later ones replace each other.
TX.latest = (work) => {
  let busy = false, waiting = false;
  const run = async () => {
    if (busy) { waiting = true; return; }
    busy = true;
    try { await work(); } finally { busy = false; }
    if (waiting) { waiting = false; run(); }
  };
  return run;
};

TX.explorer = (about) => {
  const state = { row: 0, output: 0, cells: {}, own: {}, answer: null, mode: "row", other: Math.min(1, about.rows - 1), explainer: about.others[0], share: 0.05, sign: 1, label: "0", feature: null, curve: null, matches: null };
  const kind = Object.fromEntries(about.features.map((feature) => [feature.name, feature]));
  const message = TX.el("div", { class: "message", id: "message", role: "alert" });
  const complain = (error) => { message.textContent = error ? error.message || String(error) : ""; };
  const outputName = () => state.answer.quantities[state.output];
  const one = (list) => list[state.output];
  const items = (answer, attribution, cells) => answer.features.map((name, f) => TX.item(attribution, f, name, cells[name], {
    value: attribution.values[f][state.output] ?? NaN, error: attribution.error ? attribution.error[f][state.output] ?? NaN : NaN,
    slope: attribution.gradient ? attribution.gradient[f][state.output] ?? NaN : NaN, doubt: Boolean(attribution.flags && attribution.flags[f]),
  }));
  // The attribution of an answer that is the explainer's own.
  const own = (answer) => answer.attributions.find((attribution) => attribution.name === about.attribution) || answer.attributions[0];
  const numeric = (list) => list.every((item) => Number.isFinite(item.value));
  const nothing = (answer) => TX.el("p", { class: "message" }, `No attributions: ${answer.attributions[0].reason || "the row is undefined"}.`);

  // ---------------------------------------------------------- controls
  const controls = TX.el("div", { class: "controls" });
  const setters = {};
  const control = (feature) => {
    const id = "f" + about.features.indexOf(feature), box = TX.el("div", { class: "control" }, TX.el("label", { for: id }, feature.name));
    const mark = () => box.classList.toggle("moved", state.cells[feature.name] !== state.own[feature.name]);
    const change = (value) => { state.cells[feature.name] = value; mark(); follow(); };
    if (feature.levels) {
      const select = TX.el("select", { id, onchange: () => change(select.value) }, feature.levels.map((level) => TX.el("option", { value: level }, level)));
      box.append(select);
      setters[feature.name] = (value) => { select.value = value ?? ""; mark(); };
      return box;
    }
    const span = feature.high - feature.low || 1;
    const slider = TX.el("input", { type: "range", min: feature.low, max: feature.high, step: feature.whole ? 1 : span / 400, "aria-label": feature.name,
      oninput: () => { field.value = String(Number(Number(slider.value).toPrecision(5))); field.removeAttribute("aria-invalid"); change(Number(slider.value)); } });
    const field = TX.el("input", { type: "text", id, inputmode: "decimal", autocomplete: "off", onchange: () => {
      const text = field.value.trim(), value = text === "" ? null : Number(text.replace("−", "-"));
      field.toggleAttribute("aria-invalid", false);
      if (Number.isNaN(value)) { field.setAttribute("aria-invalid", "true"); change(text); return; }
      if (value !== null) slider.value = value;
      change(value);
    } });
    box.append(field, slider);
    setters[feature.name] = (value) => { field.removeAttribute("aria-invalid"); field.value = value === null ? "" : String(Number(value.toPrecision(6))); slider.value = value ?? feature.low; mark(); };
    return box;
  };
  const boxes = about.features.map((feature) => ({ feature, box: control(feature) }));
  controls.append(...boxes.map(({ box }) => box));
  const search = TX.el("input", { type: "search", id: "search", placeholder: `find among ${about.features.length} features`, "aria-label": "find a feature",
    oninput: () => boxes.forEach(({ feature, box }) => { box.hidden = !feature.name.toLowerCase().includes(search.value.trim().toLowerCase()); }) });

  // ---------------------------------------------------------- the answer
  const figures = TX.el("div", { class: "figures" }), speed = TX.el("span", { class: "soft small" });
  const figure = (id, value, words, second) => TX.el("div", { class: "figure" + (second ? " second" : "") }, TX.el("b", { id }, value), TX.el("span", {}, words));
  // One panel an attribution, each under its question.
  const panels = TX.el("div", { id: "bars", class: "panels" }), drawings = [];
  const panel = (i) => {
    const holder = TX.el("div"), stability = TX.el("span"), means = TX.el("p", { class: "soft small" });
    const chart = TX.responsive(holder, (width) => {
      const { answer } = state, attribution = answer.attributions[i];
      return TX.drawRow(width, attribution, items(answer, attribution, state.cells), {
        base: one(attribution.base), prediction: one(answer.predictions), logOdds: answer.log_odds, most: 14,
      }) || nothing(answer);
    });
    const { question } = state.answer.attributions[i];
    return { node: TX.el("section", { class: "attribution" }, TX.el("h4", {}, question), stability, means, holder), redraw: () => {
      const attribution = state.answer.attributions[i];
      TX.stability(stability, attribution.stability, attribution.relative_change ? one(attribution.relative_change) : null, attribution.reason);
      means.textContent = TX.meaning(attribution, state.output);
      chart.redraw();
    } };
  };
  // The row itself: both columns, its reasons, the curve of a feature.
  const told = TX.el("div", { id: "told" }), why = TX.el("div", { id: "reasons" }), behind = TX.el("div"), behindNote = TX.el("p", { class: "soft small what" });
  const curveChart = TX.responsive(behind, (width) => (state.curve ? TX.curve(width, state.curve, outputName()) : TX.el("p", { class: "soft small" }, "Pick a feature in the table of the row.")));
  const column = (attribution) => ({ ...attribution, values: attribution.values.map((v) => v[state.output] ?? NaN), bounds: attribution.error ? attribution.error.map((v) => v[state.output] ?? NaN) : attribution.values.map(() => NaN),
    flat: attribution.flat ? attribution.flat.map((v) => v[state.output]) : null, relative_change: attribution.relative_change ? one(attribution.relative_change) ?? NaN : NaN });
  const typical = Object.fromEntries(about.features.map(({ name }, f) => [name, about.typical[f]]));
  const tell = () => {
    const { answer } = state, columns = answer.attributions.map(column);
    const row = { names: answer.features, cells: answer.features.map((name) => state.cells[name]), categorical: answer.categorical, typical: answer.features.map((name) => typical[name] ?? null), missing: "", columns };
    told.replaceChildren(TX.rowTable(row, { pick: (f) => { state.feature = answer.features[f]; bend(); } }));
    why.replaceChildren(TX.reasonsTable(row, columns.find(({ adds_up }) => adds_up), state.sign));
  };
  const bend = TX.latest(async () => {
    if (!state.feature) return;
    try {
      state.curve = await TX.ask("curve", { cells: state.cells, feature: state.feature, output: state.output });
      behindNote.textContent = `${TX.calm(outputName())} as ${TX.calm(state.feature)} takes other values. Circle: this row; dashed: its slope over ±1 SD; strokes: values in the background.`;
    } catch (error) { state.curve = null; behindNote.textContent = error.message; }
    curveChart.redraw();
  });
  const show = () => {
    const { answer } = state, f = one(answer.predictions), g = answer.surrogate ? one(answer.surrogate) : null;
    const plain = (value) => (value === null ? "–" : TX.plainly(answer, value));
    const raw = (value) => (answer.log_odds && value !== null ? `, log-odds ${TX.figure(value)}` : "");
    figures.replaceChildren(figure("prediction", plain(f), `${answer.output_words[state.output]}${raw(f)}`),
      figure("surrogate", plain(g), `by the slopes of row ${state.label}${raw(g)}`, true),
      figure("base", TX.baseWords(answer, one(answer.attributions[0].base)), "base value", true));
    tell();
    bend();
    speed.textContent = `${answer.milliseconds} ms`;
    complain(answer.notes.join("; "));
    while (drawings.length < answer.attributions.length) { const made = panel(drawings.length); drawings.push(made); panels.append(made.node); }
    drawings.forEach((drawing) => drawing.redraw());
  };
  const follow = TX.latest(async () => {
    try {
      state.answer = await TX.ask("explain", { cells: state.cells, row: state.row });
      show();
      await contrast();
    } catch (error) { complain(error); }
  });
  const open = async (row) => {
    try {
      const answer = await TX.ask("row", { row });
      Object.assign(state, { row, answer, label: answer.label, own: answer.cells, cells: { ...answer.cells } });
      identifier.textContent = answer.label === String(row) ? "" : TX.calm(answer.label);
      if (recourse) recourse.reset(answer.predictions[0] > (answer.log_odds ? 0 : 0.5));
      for (const feature of about.features) setters[feature.name](answer.cells[feature.name]);
      rowField.value = row;
      show();
      await contrast();
    } catch (error) { complain(error); }
  };

  // ---------------------------------------------------------- comparisons
  const pair = TX.el("div", { class: "pair" }), note = TX.el("p", { class: "soft small", id: "note" });
  const side = (title, draw) => {
    const holder = TX.el("div");
    const box = TX.el("div", {}, TX.el("h4", {}, title), holder);
    TX.responsive(holder, draw);
    return box;
  };
  // Both sides list the same features in the same order, so that the eye can run across; on one scale if in one unit.
  const beside = (left, right, cells, otherCells, titles) => {
    const [mine, theirs] = [own(left), own(right)];
    const [a, b] = [items(left, mine, cells), items(right, theirs, otherCells)];
    if (!numeric(a) || !numeric(b)) return [nothing(numeric(a) ? right : left)];
    const names = TX.fold(a, 13).filter((item) => !item.folded).map((item) => left.features[item.feature]);
    const chosen = [[a, left], [b, right]].map(([list, answer]) => names.map((name) => list[answer.features.indexOf(name)]).filter(Boolean));
    const range = mine.axis[state.output] === theirs.axis[state.output] ? TX.range(chosen.flat()) : null;
    return chosen.map((list, i) => side(titles[i], (width) => TX.bars(width, list, { range, signed: [mine, theirs][i].signed })));
  };
  const modes = {
    row: ["another row", async () => {
      const other = await TX.ask("row", { row: state.other });
      note.textContent = `${TX.calm(outputName())}: ${TX.number(one(state.answer.predictions))} here, ${TX.number(one(other.predictions))} in row ${state.other}.`;
      return beside(state.answer, other, state.cells, other.cells, ["here", `row ${state.other}`]);
    }],
    explainer: ["another explainer", async () => {
      if (!state.explainer) { note.textContent = "There is no other explainer."; return []; }
      const other = await TX.ask("compare", { cells: state.cells, explainer: state.explainer });
      const [mine, theirs] = [own(state.answer).axis[state.output], other.attributions[0].axis[state.output]];
      note.textContent = mine === theirs ? mine : `The two sides have different units: compare order and sign, not length. Left: ${mine}; right: ${theirs}.`;
      return beside(state.answer, other, state.cells, state.cells, [`T-Explainer, ${about.attribution}`, state.explainer]);
    }],
    stability: ["small changes", async () => {
      const found = await TX.ask("stability", { cells: state.cells, share: state.share });
      note.textContent = found.worst === null ? "Some of the changed rows do not have attributions."
        : `${found.changes} nearby rows, every number changed by about ${TX.number(found.share)} SD: the attributions change by ${TX.percent(found.median)} (median), ${TX.percent(found.worst)} at worst. Thin lines: where each bar went.`;
      const list = items(state.answer, own(state.answer), state.cells).map((item, f) => ({ ...item, error: null, low: found.low[f][state.output], high: found.high[f][state.output] }));
      if (!numeric(list)) return [nothing(state.answer)];
      return [side("attributions and their range", (width) => TX.bars(width, [...list].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 13)))];
    }],
  };
  const contrast = TX.latest(async () => {
    try { pair.replaceChildren(...await modes[state.mode][1]()); } catch (error) { pair.replaceChildren(TX.el("p", { class: "message" }, error.message)); }
  });
  const otherRow = TX.el("input", { type: "number", min: 0, max: about.rows - 1, value: state.other, "aria-label": "row to compare with", onchange: () => { state.other = Number(otherRow.value); contrast(); } });
  const otherExplainer = TX.select("explainer to compare with", about.others.length ? about.others : ["none"], (i) => { state.explainer = about.others[i]; contrast(); });
  const otherShare = TX.select("size of the changes", ["0.01 SD", "0.05 SD", "0.2 SD"], (i) => { state.share = [0.01, 0.05, 0.2][i]; contrast(); });
  otherShare.selectedIndex = 1;
  const tools = { row: otherRow, explainer: otherExplainer, stability: otherShare };
  const tabs = Object.keys(modes).map((name) => TX.el("button", { "data-mode": name, onclick: () => { state.mode = name; tabbed(); contrast(); } }, modes[name][0]));
  const tabbed = () => {
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", tab.dataset.mode === state.mode));
    Object.entries(tools).forEach(([name, tool]) => { tool.hidden = name !== state.mode; });
  };
  tabbed();

  // ---------------------------------------------------------- the page
  const rowField = TX.el("input", { type: "number", id: "row", min: 0, max: about.rows - 1, value: 0, onchange: () => open(Number(rowField.value)) });
  const next = (by) => {
    const among = state.matches || null, at = among ? among.indexOf(state.row) : -1;
    return at < 0 ? Math.min(about.rows - 1, Math.max(0, state.row + by)) : among[Math.min(among.length - 1, Math.max(0, at + by))];
  };
  const step = (by) => () => open(next(by));
  const identifier = TX.el("b", { id: "identifier" }), finding = TX.el("span", { class: "message small", id: "finding", role: "status" });
  const finder = TX.el("input", { type: "search", id: "find", placeholder: `identifier, or ${TX.shorten((about.features.find(({ levels }) => !levels) || about.features[0]).name, 18)} > 1`, "aria-label": "find rows by identifier or condition", onchange: async () => {
    state.matches = null;
    finding.textContent = "";
    if (!finder.value.trim()) return;
    try {
      const found = await TX.ask("find", { words: finder.value });
      state.matches = found.rows;
      finding.textContent = found.count === 1 ? "" : `${found.count.toLocaleString("en")} rows; ‹ and › step through them`;
      open(found.rows[0]);
    } catch (error) { finding.textContent = error.message; }
  } });
  const top = TX.el("div", { class: "top" }, TX.el("h1", {}, about.title), TX.el("label", {}, "row", rowField),
    TX.el("button", { onclick: step(-1), "aria-label": "previous row" }, "‹"), TX.el("button", { onclick: step(1), "aria-label": "next row" }, "›"), TX.el("span", { class: "soft small" }, `of ${about.rows.toLocaleString("en")}`), identifier, finder, finding);
  if (about.outputs.length > 1) top.append(TX.select("output", about.outputs, (o) => { state.output = o; show(); contrast(); }));
  const whatIf = TX.card("What if", about.features.length > 12 ? search : null, controls);
  whatIf.querySelector("header").append(TX.el("button", { id: "reset", onclick: () => open(state.row) }, "reset"));
  const predictionCard = TX.card("Prediction", figures, message);
  predictionCard.querySelector("header").append(speed);
  const compareCard = TX.card("Compare with", note, pair);
  compareCard.querySelector("header").append(TX.el("div", { class: "tabs" }, tabs), ...Object.values(tools));
  const rowCard = TX.card("This row", told), reasonsCard = TX.card("Reasons", why), curveCard = TX.card("The curve behind a number", behindNote, behind);
  reasonsCard.querySelector("header").append(TX.select("direction of the reasons", ["toward a higher prediction", "toward a lower prediction"], (i) => { state.sign = i ? -1 : 1; tell(); }));
  const recourse = TX.recourseCard(about, { cells: () => state.cells, apply: (changes) => {
    for (const [name, value] of Object.entries(changes)) { state.cells[name] = value; setters[name](value); }
    follow();
  } });
  const overview = TX.el("div");
  const load = TX.el("button", { id: "overview", onclick: async () => {
    load.disabled = true;
    load.textContent = "explaining …";
    try {
      const part = await TX.ask("overview");
      overview.replaceChildren(...TX.sections.explanation(part, (row) => { open(row); }).filter(Boolean));
      load.remove();
    } catch (error) { complain(error); load.disabled = false; load.textContent = "try again"; }
  } }, "Explain all rows");
  document.getElementById("page").replaceChildren(top, TX.el("div", { class: "bench" }, whatIf,
    TX.el("div", { class: "answers" }, predictionCard, rowCard, curveCard, reasonsCard, recourse ? recourse.card : null, TX.card("As charts", panels), compareCard)),
  TX.el("h2", {}, "All rows"), load, overview, TX.el("h2", {}, "Details"), TX.el("pre", { class: "small soft" }, about.words));
  document.title = about.title;
  open(0);
};

TX.ask("about").then(TX.explorer).catch((error) => {
  document.getElementById("page").replaceChildren(TX.el("p", { class: "message" }, error.message));
});

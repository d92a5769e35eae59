"use strict";
// Panels of one row: the curve behind a number, and changes that would move the prediction.

// curve: {feature, x, y, at, prediction, slope, sd, column, levels, steps}; `words` names the vertical axis.
TX.curve = (width, curve, words) => {
  const height = 260, left = 62, bottom = 44, top = 10;
  const svg = TX.svg("svg", { class: "chart curve", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${words} as ${curve.feature} changes` });
  const tangent = curve.slope === null || curve.at === null ? [] : [-1, 1].map((side) => [curve.at + side * curve.sd, curve.prediction + side * curve.sd * curve.slope]);
  const ends = (list) => {
    const seen = list.filter(Number.isFinite), low = Math.min(...seen), high = Math.max(...seen), room = (high - low) * 0.06 || Math.abs(low) * 0.1 || 0.5;
    return [low - room, high + room];
  };
  const [x0, x1] = ends([...curve.x, curve.at ?? NaN]), [y0, y1] = ends([...curve.y, curve.prediction, ...tangent.map(([, y]) => y)]);
  const ax = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 12), ay = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - top);
  const ticks = TX.ticks(y0, y1), marks = TX.tickWords(ticks);
  ticks.forEach((tick, i) => svg.append(TX.svg("line", { class: "axis", x1: left, x2: width - 12, y1: ay(tick), y2: ay(tick) }), TX.svg("text", { class: "soft end", x: left - 6, y: ay(tick) + 4 }, marks[i])));
  const places = curve.levels.length ? curve.levels.map((_, i) => i) : TX.ticks(x0, x1, 5), every = Math.ceil((places.length * 76) / (width - left));
  const names = curve.levels.length ? curve.levels.map((level) => TX.shorten(level, 12)) : TX.tickWords(places);
  places.forEach((place, i) => { if (i % every === 0) svg.append(TX.svg("text", { class: "soft middle", x: ax(place), y: height - bottom + 16 }, names[i])); });
  svg.append(TX.svg("text", { class: "middle", x: (left + width) / 2, y: height - 6 }, TX.fit(curve.feature, width - left - 20)));
  const jitter = curve.levels.length || curve.steps ? 6 : 0; // values of a discrete column side by side
  svg.append(TX.svg("path", { class: "rug", d: curve.column.map((x, i) => `M${(ax(x) + jitter * (((i * 0.618034) % 1) - 0.5) * 2).toFixed(1)} ${height - bottom}v-7`).join("") }));
  if (!curve.levels.length) svg.append(TX.svg("path", { class: curve.steps ? "line dotted" : "line", d: curve.x.map((x, i) => `${i ? "L" : "M"}${ax(x).toFixed(1)} ${ay(curve.y[i]).toFixed(1)}`).join("") }));
  if (curve.levels.length || curve.steps) curve.x.forEach((x, i) => svg.append(TX.svg("circle", { class: "dot", cx: ax(x), cy: ay(curve.y[i]), r: 4 })));
  if (tangent.length) svg.append(TX.svg("path", { class: "tangent", d: tangent.map(([x, y], i) => `${i ? "L" : "M"}${ax(x).toFixed(1)} ${ay(y).toFixed(1)}`).join("") }));
  if (curve.at !== null) svg.append(TX.svg("circle", { class: "here", cx: ax(curve.at), cy: ay(curve.prediction), r: 6 }));
  return svg;
};

// The card "What would change it": a target, what must stay, and proposals that can be tried out.
TX.recourseCard = (about, { cells, apply }) => {
  const answer = TX.el("div", { id: "proposals" }), several = about.outputs.length !== 1 || about.outputs[0] === "predicted";
  const targets = [...about.classes.map((name) => ({ words: `class ${name}`, value: () => name })),
    ...(several ? [] : [["at most", "<="], ["at least", ">="]].map(([words, sign]) => ({ words, number: true, value: () => [sign, limit.value.trim().replace("−", "-")] })))];
  if (!targets.length) return null;
  const limit = TX.el("input", { type: "text", id: "limit", inputmode: "decimal", "aria-label": "value of the target", placeholder: about.classes.length ? "0.3" : "value", autocomplete: "off" });
  const target = TX.select("target", targets.map(({ words }) => words), () => { limit.hidden = !targets[target.selectedIndex].number; });
  target.id = "target";
  limit.hidden = !targets[0].number;
  const boxes = about.features.map(({ name }) => [name, TX.el("input", { type: "checkbox" })]);
  const fixed = TX.el("details", {}, TX.el("summary", {}, "features that must stay as they are"), TX.el("div", { class: "fixed" }, boxes.map(([name, box]) => TX.el("label", { title: name }, box, TX.shorten(name, 80)))));
  const proposal = ({ heading, changes }) => TX.el("div", { class: "proposal" }, TX.el("p", {}, TX.el("b", {}, heading), " ",
    changes.length ? TX.el("button", { onclick: () => apply(Object.fromEntries(changes.map(({ feature, value }) => [feature, value]))) }, "try it") : null),
  TX.el("table", {}, TX.el("tbody", {}, changes.map(({ feature, before, after, size }) => TX.el("tr", {}, TX.el("th", { scope: "row" }, feature), TX.el("td", {}, `${before} → ${after}`), TX.el("td", { class: "number" }, size))))));
  const find = TX.el("button", { id: "recourse", onclick: async () => {
    find.disabled = true;
    try {
      const found = await TX.ask("recourse", { cells: cells(), target: targets[target.selectedIndex].value(), fixed: boxes.filter(([, box]) => box.checked).map(([name]) => name) });
      answer.replaceChildren(TX.el("p", {}, found.words), ...found.proposals.filter(({ changes }) => changes.length).map(proposal));
    } catch (error) { answer.replaceChildren(TX.el("p", { class: "message" }, error.message)); }
    find.disabled = false;
  } }, "find changes");
  const card = TX.card("What would change it", TX.el("div", { class: "tools" }, TX.el("label", {}, "to ", target), limit, find), fixed, answer);
  // For another row; of two classes the target is the one that is not predicted.
  const reset = (likely) => {
    answer.replaceChildren();
    const explained = about.classes.indexOf(about.outputs[0]);
    if (about.classes.length === 2 && explained >= 0 && !several) target.selectedIndex = likely ? 1 - explained : explained;
    limit.hidden = !targets[target.selectedIndex].number;
  };
  return { card, reset };
};

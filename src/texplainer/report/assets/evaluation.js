"use strict";
// A section per evaluation: the table, boxes per metric, stability beside faithfulness, agreement.

TX.sections.evaluation = (part) => {
  const names = part.explainers, columns = part.columns;
  const lines = names.map((_, i) => i);
  const control = (i) => (part.controls[i] ? `${names[i]} (control)` : names[i]);
  const table = TX.table([
    { label: "explainer", value: (i) => names[i], words: control },
    ...columns.map((column, j) => ({
      label: `${column.label} ${column.better === "low" ? "↓" : "↑"}`, number: true, value: (i) => part.summary[i][j] ?? NaN,
      words: (i) => (part.summary[i][j] === null ? "–" : TX.number(part.summary[i][j])), strong: (i) => part.best[i][j],
    })),
    { label: "seconds", number: true, value: (i) => part.seconds[i] ?? NaN },
  ], lines);
  const state = { box: 0, x: 0, y: 0 };
  const family = (wanted) => columns.findIndex((column) => column.family === wanted);
  state.x = Math.max(0, family("stability"));
  state.y = Math.max(0, family("faithfulness"));
  state.box = state.x;
  const labels = columns.map((column) => column.label);

  const boxHolder = TX.el("div", { class: "boxes" });
  const box = TX.responsive(boxHolder, (width) => TX.boxes(width, names.map((_, i) => ({ name: control(i), box: part.boxes[i][state.box] }))));
  const boxPicker = TX.select("metric", labels, (j) => { state.box = j; box.redraw(); });
  boxPicker.selectedIndex = state.box;
  const boxCard = TX.card("Distribution over rows", boxHolder, TX.el("p", { class: "soft small" }, "Line: 5% to 95% of the rows; box: quartiles; mark: median; dot: maximum. Log scale if all scores are positive."));
  boxCard.querySelector("header").append(boxPicker);

  const planeHolder = TX.el("div", { class: "plane" });
  const plane = TX.responsive(planeHolder, (width) => TX.plane(width, names.map((_, i) => ({
    name: control(i), x: part.boxes[i][state.x] && part.boxes[i][state.x].at[2], y: part.summary[i][state.y],
  })), `median ${labels[state.x]}`, labels[state.y], columns[state.x].better));
  const pickers = ["x", "y"].map((axis) => TX.select(axis === "x" ? "stability" : "faithfulness", labels, (j) => { state[axis] = j; plane.redraw(); }));
  pickers[0].selectedIndex = state.x;
  pickers[1].selectedIndex = state.y;
  const planeCard = TX.card("Stability and faithfulness", planeHolder, TX.el("p", { class: "soft small" }, "A constant explanation is stable but useless. The best explainers are in the upper right corner."));
  planeCard.querySelector("header").append(...pickers);

  const shade = (value) => (value === null ? null : `background: rgba(${TX.colour("--low")}, ${(0.1 + 0.7 * Math.max(0, value)).toFixed(2)})`);
  const agreement = TX.el("div", { class: "scroll" }, TX.el("table", { class: "agreement" },
    TX.el("thead", {}, TX.el("tr", {}, TX.el("th"), names.map((name) => TX.el("th", { class: "number" }, TX.shorten(name, 16))))),
    TX.el("tbody", {}, lines.map((i) => TX.el("tr", {}, TX.el("th", { scope: "row" }, names[i]), lines.map((j) => {
      const cell = TX.el("td", { class: "number" }, part.agreement[i][j] === null ? "–" : part.agreement[i][j].toFixed(2));
      const style = shade(part.agreement[i][j]);
      if (style) cell.style.cssText = style;
      return cell;
    }))))));
  const notes = part.notes.length ? TX.card("What is missing, and why", TX.facts(part.notes)) : null;
  const tableCard = TX.card("All metrics", table.node, TX.el("p", { class: "soft small" }, "↓ lower is better, ↑ higher; bold: the best. Controls do not use the model. A constant explanation is perfectly stable but useless."));
  tableCard.classList.add("wide");
  return [TX.el("div", { class: "chips" }, [`${names.length} explainers`, `${part.rows.toLocaleString("en")} rows`, `${columns.length} columns`].map((words) => TX.el("span", { class: "chip" }, words))),
    TX.el("div", { class: "grid" }, tableCard, boxCard, planeCard,
      TX.card(`Agreement on the top ${part.top} features`, agreement), TX.card("What was run", TX.facts(part.facts)), notes)];
};

// Boxes by explainer; items: {name, box: {at: [p5, p25, p50, p75, p95, max], zeros}}
TX.boxes = (width, items) => {
  const frame = TX.frame(width, items.length, items);
  const known = items.filter((item) => item.box).flatMap((item) => item.box.at);
  const positive = known.filter((value) => value > 0);
  const log = positive.length > 0 && known.every((value) => value >= 0);
  const scale = log ? (value) => Math.log10(Math.max(value, Math.min(...positive) / 3)) : (value) => value;
  let low = Math.min(...known.map(scale)), high = Math.max(...known.map(scale));
  if (!(high > low)) { low = (low || 0) - 0.5; high = low + 1; }
  const at = (value) => frame.label + 6 + ((scale(value) - low) / (high - low)) * (width - frame.label - 40);
  const ticks = log ? TX.decades(low, high) : TX.ticks(low, high);
  TX.axis(frame.svg, at, ticks, items.length * ROW, 0, log);
  items.forEach((item, line) => {
    const y = line * ROW;
    const [p5, p25, p50, p75, p95, most] = item.box ? item.box.at : [];
    item.words = item.box ? `${item.name}\nmedian ${TX.number(p50)}\nmiddle half ${TX.number(p25)} to ${TX.number(p75)}\ngreatest ${TX.number(most)}` + (item.box.zeros ? `\n${item.box.zeros} rows at 0` : "") : `${item.name}: no score`;
    const row = TX.row(frame, width, y, item, null);
    if (item.box) {
      row.append(TX.svg("line", { class: "whisker", x1: at(p5), x2: at(p95), y1: y + 13, y2: y + 13 }),
        TX.svg("rect", { class: "bar negative folded", x: at(p25), y: y + 6, width: Math.max(1, at(p75) - at(p25)), height: ROW - 12, "data-value": p50 }),
        TX.svg("line", { class: "median", x1: at(p50), x2: at(p50), y1: y + 4, y2: y + ROW - 4 }),
        TX.svg("circle", { class: "negative", cx: at(most), cy: y + 13, r: 2.6 }));
    }
    frame.svg.append(row);
  });
  return frame.svg;
};
TX.decades = (low, high) => {
  const step = Math.max(1, Math.ceil((high - low) / 6)), out = [];
  for (let i = Math.ceil(low); i <= high; i += step) out.push(10 ** i);
  return out.length > 1 ? out : [10 ** low, 10 ** high];
};

// Explainers as named points; x runs towards the better end.
TX.plane = (width, items, xName, yName, better) => {
  const height = 320, left = 60, bottom = 44, right = 20;
  const svg = TX.svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height });
  const seen = items.filter((item) => item.x !== null && item.y !== null);
  if (!seen.length) { svg.append(TX.svg("text", { x: 20, y: 40, class: "soft" }, "no scores")); return svg; }
  const positive = seen.map((item) => item.x).filter((x) => x > 0);
  const log = positive.length > 0 && seen.every((item) => item.x >= 0);
  const scale = log ? (x) => Math.log10(Math.max(x, Math.min(...positive) / 3)) : (x) => x;
  const range = (list) => { const low = Math.min(...list), high = Math.max(...list), room = (high - low) * 0.12 || 0.5; return [low - room, high + room]; };
  const [x0, x1] = range(seen.map((item) => scale(item.x))), [y0, y1] = range(seen.map((item) => item.y));
  const ax = (x) => { const share = (scale(x) - x0) / (x1 - x0); return left + (better === "low" ? 1 - share : share) * (width - left - right); };
  const ay = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - 12);
  const yTicks = TX.ticks(y0, y1), yWords = TX.tickWords(yTicks);
  yTicks.forEach((tick, i) => {
    svg.append(TX.svg("line", { class: "axis", x1: left, x2: width - right, y1: ay(tick), y2: ay(tick) }), TX.svg("text", { class: "soft end", x: left - 6, y: ay(tick) + 4 }, yWords[i]));
  });
  const xTicks = log ? TX.decades(x0, x1) : TX.ticks(x0, x1);
  for (const tick of xTicks) svg.append(TX.svg("text", { class: "soft middle", x: ax(tick), y: height - bottom + 18 }, TX.number(Number(tick.toPrecision(2)))));
  svg.append(TX.svg("text", { class: "soft middle", x: (left + width - right) / 2, y: height - 6 }, `${xName} (better →)`),
    TX.svg("text", { class: "soft middle", transform: `translate(13 ${(height - bottom) / 2}) rotate(-90)` }, `${yName} (better ↑)`.replace("(better ↑)", "")));
  const places = [];
  for (const item of [...seen].sort((a, b) => a.y - b.y)) {
    const [x, y] = [ax(item.x), ay(item.y)], flip = x > width * 0.68;
    let textY = y + 4;
    while (places.some(([px, py]) => Math.abs(px - x) < 120 && Math.abs(py - textY) < 13)) textY -= 13;
    places.push([x, textY]);
    svg.append(TX.svg("g", { class: "bar-row", tabindex: 0, role: "img", ...TX.hover(() => `${item.name}\n${xName} ${TX.number(item.x)}\n${yName} ${TX.number(item.y)}`) },
      TX.svg("circle", { class: item.name.endsWith("(control)") ? "rest" : "negative", cx: x, cy: y, r: 5 }),
      TX.svg("text", { class: flip ? "end" : "", x: flip ? x - 9 : x + 9, y: textY }, TX.shorten(item.name, 24))));
  }
  return svg;
};

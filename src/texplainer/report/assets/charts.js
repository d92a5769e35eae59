"use strict";
// Bars and waterfalls as SVG. An item is {name, detail, value, error, doubt, folded, words}; a detail is not cut here.

const ROW = 26, LETTER = 7.3, NUMBER = 62; // pixels: a line, a letter, room for a number

// The greatest items by |value|; the smallest share the last one, or are left out where a sum means nothing.
TX.fold = (items, most, sum = true) => {
  const sorted = [...items].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  if (sorted.length <= most || !sum) return sorted.slice(0, most);
  const rest = sorted.slice(most - 1);
  const value = rest.reduce((sum, item) => sum + item.value, 0);
  return [...sorted.slice(0, most - 1), { name: `the other ${rest.length}`, value, folded: true, plain: rest[0].plain }];
};

// The width of a chart's text in pixels, and a name cut to it.
TX.textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
  return (words) => pen.measureText(words.slice(0, 300)).width;
})();
TX.fit = (name, room) => {
  let letters = Math.min([...name].length, 300), shown = TX.shorten(name, letters);
  while (letters > 6 && TX.textWidth(shown) > room) { letters -= 1; shown = TX.shorten(name, letters); }
  return shown;
};
// Words on at most so many lines, each cut to the room.
TX.lines = (words, room, most) => {
  const lines = [""];
  for (const word of words.split(" ")) {
    const last = lines[lines.length - 1], longer = last ? `${last} ${word}` : word;
    if (!last || lines.length === most || TX.textWidth(longer) <= room) lines[lines.length - 1] = longer; else lines.push(word);
  }
  return lines.map((line) => TX.fit(line, room));
};

TX.frame = (width, rows, items) => {
  const label = Math.min(Math.max(...items.map((item) => TX.textWidth(item.name + (item.detail || "")))) + 18, width * 0.48);
  const height = rows * ROW + 34;
  const svg = TX.svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "group" });
  return { svg, label, height };
};

// A band behind one line of the chart: hover, focus, pick.
TX.row = (frame, width, y, item, pick) => TX.svg("g", {
  class: "bar-row" + (pick ? " pickable" : "") + (item.picked ? " picked" : ""), tabindex: 0, role: "img",
  "aria-label": item.words || `${item.name}${item.detail || ""}: ${TX.number(item.value, true)}`,
  ...TX.hover(() => item.words || `${item.name}\n${TX.number(item.value, true)}`),
  onclick: pick ? () => pick(item) : null,
  onkeydown: pick ? (event) => { if (event.key === "Enter") pick(item); } : null,
},
TX.svg("rect", { class: "back", x: 0, y, width, height: ROW }),
TX.svg("text", { x: frame.label - 10, y: y + 17, class: "end" }, TX.fit(item.name, frame.label - 16 - TX.textWidth(item.detail || "")) + (item.detail || "")));

TX.bar = (item, x0, x1, y) => {
  const left = Math.min(x0, x1), width = Math.max(Math.abs(x1 - x0), 0.8);
  const kind = item.rest ? "rest" : item.plain ? "amount" : item.value >= 0 ? "positive" : "negative";
  const group = [TX.svg("rect", {
    class: `bar ${kind}${item.folded ? " folded" : ""}`, "data-value": item.value, x: left, y: y + 5, width, height: ROW - 10, rx: 1.5,
  })];
  if (item.doubt) { // hatching says what colour must not say alone
    for (let x = left + 5; x < left + width; x += 6) {
      group.push(TX.svg("line", { class: "doubt", x1: x - 4, x2: x, y1: y + ROW - 5, y2: y + 5 }));
    }
  }
  return group;
};
TX.whisker = (x0, x1, y) => Math.abs(x1 - x0) < 2 ? [] : [
  TX.svg("line", { class: "whisker", x1: x0, x2: x1, y1: y + ROW / 2, y2: y + ROW / 2 }),
  ...[x0, x1].map((x) => TX.svg("line", { class: "whisker", x1: x, x2: x, y1: y + ROW / 2 - 3, y2: y + ROW / 2 + 3 })),
];
TX.axis = (svg, at, ticks, y, top, log = false) => {
  const words = log ? ticks.map((tick) => TX.number(Number(tick.toPrecision(2)))) : TX.tickWords(ticks);
  const wide = Math.max(...words.map((word) => word.length)) * LETTER + 12;
  const every = ticks.length > 1 ? Math.ceil(wide / (at(ticks[1]) - at(ticks[0]))) : 1;
  ticks.forEach((tick, i) => {
    svg.append(TX.svg("line", { class: "axis", x1: at(tick), x2: at(tick), y1: top, y2: y }));
    if (i % every === 0) svg.append(TX.svg("text", { class: "soft middle", x: at(tick), y: y + 15 }, words[i]));
  });
};

TX.reach = (item) => Math.max(Math.abs(item.value) + (item.error || 0), item.value >= 0 ? item.high || 0 : -(item.low || 0));
TX.range = (items) => {
  const low = Math.min(0, ...items.filter((i) => i.value < 0).map((i) => -TX.reach(i)));
  const high = Math.max(0, ...items.filter((i) => i.value >= 0).map(TX.reach));
  return [low, high === low ? 1 : high];
};

// `range`: the two ends of the axis, for charts that must be on one scale.
TX.bars = (width, items, { pick = null, signed = true, range = null } = {}) => {
  const frame = TX.frame(width, items.length, items);
  const reach = TX.reach, [low, high] = range || TX.range(items);
  const room = NUMBER;
  const inner = width - frame.label - (high > 0 ? room : 4) - (low < 0 ? room : 0);
  const at = (value) => frame.label + (low < 0 ? room : 0) + ((value - low) / (high - low)) * inner;
  TX.axis(frame.svg, at, TX.ticks(low, high), items.length * ROW, 0);
  items.forEach((item, line) => {
    const y = line * ROW;
    const row = TX.row(frame, width, y, item, pick);
    row.append(...TX.bar(item, at(0), at(item.value), y));
    if (item.error) row.append(...TX.whisker(at(item.value - item.error), at(item.value + item.error), y));
    if (Number.isFinite(item.high)) row.append(...TX.whisker(at(item.low), at(item.high), y));
    const right = item.value >= 0;
    row.append(TX.svg("text", { class: right ? "" : "end", x: at(right ? reach(item) : -reach(item)) + (right ? 6 : -6), y: y + 17 },
      (signed ? TX.signed : TX.figure)(item.value)));
    frame.svg.append(row);
  });
  return frame.svg;
};

// From the base value at the bottom to f(x) at the top; what the shares leave over is a grey bar, so that it ends there.
TX.waterfall = (width, items, { base, prediction, logOdds = false, pick = null }) => {
  base = Number.isFinite(base) ? base : 0;
  const lines = [...items];
  const left = prediction - base - items.reduce((sum, item) => sum + item.value, 0);
  const most = Math.max(...items.map((item) => Math.abs(item.value)));
  if (Number.isFinite(left) && Math.abs(left) > 1e-3 * most) {
    lines.push({ name: "remaining difference", value: left, rest: true });
  }
  const above = logOdds ? 2 : 1; // lines above the first bar
  const frame = TX.frame(width, lines.length + above + 1, lines);
  let end = base;
  for (const line of [...lines].reverse()) { line.start = end; end += line.value; line.end = end; }
  const points = lines.flatMap((line) => [line.start, line.end]);
  let low = Math.min(...points), high = Math.max(...points);
  if (high - low < 1e-12) { low -= 0.5; high += 0.5; }
  const room = NUMBER, inner = width - frame.label - 2 * room;
  const at = (value) => frame.label + room + ((value - low) / (high - low)) * inner;
  TX.axis(frame.svg, at, TX.ticks(low, high), (lines.length + above + 1) * ROW, above * ROW);
  if (logOdds) TX.probabilities(frame.svg, at, frame.label, width);
  lines.forEach((line, index) => {
    const y = (index + above) * ROW;
    const row = TX.row(frame, width, y, line, pick);
    row.append(TX.svg("line", { class: "joint", x1: at(line.start), x2: at(line.start), y1: y + 5, y2: y + ROW + 5 }));
    row.append(...TX.bar(line, at(line.start), at(line.end), y));
    if (line.error) row.append(...TX.whisker(at(line.end - line.error), at(line.end + line.error), y));
    const right = line.value >= 0, beyond = line.error ? at(line.end + line.error) - at(line.end) : 0;
    row.append(TX.svg("text", { class: right ? "" : "end", x: at(line.end) + (right ? 6 + beyond : -6 - beyond), y: y + 17 }, TX.signed(line.value)));
    frame.svg.append(row);
  });
  frame.svg.append(TX.landmark(at(end), above * ROW - 9, `f(x) = ${TX.figure(end)}`, width));
  frame.svg.append(TX.landmark(at(base), (lines.length + above) * ROW + 18, `E f(X) = ${TX.figure(base)}`, width));
  return frame.svg;
};
TX.landmark = (x, y, words, width) => {
  const half = words.length * 3.4;
  return TX.svg("text", { class: "middle landmark", x: Math.min(Math.max(x, half), width - half), y }, words);
};

// Above an axis of log-odds the probabilities they stand for, the plainest first, as many as have room.
TX.PROBABILITIES = [0.5, 0.01, 0.99, 0.1, 0.9, 1e-4, 0.9999, 1e-6, 0.999999, 1e-3, 0.999, 1e-9, 1e-12, 0.25, 0.75,
  ...Array.from({ length: 19 }, (_, i) => (i + 1) / 20), ...Array.from({ length: 99 }, (_, i) => (i + 1) / 100)];
TX.probabilities = (svg, at, left, width) => {
  const taken = [];
  for (const p of TX.PROBABILITIES) {
    const x = at(Math.log(p / (1 - p)));
    if (x < left + 20 || x > width - 24 || taken.some((other) => Math.abs(other - x) < 70)) continue;
    taken.push(x);
    svg.append(TX.svg("line", { class: "axis", x1: x, x2: x, y1: 17, y2: 23 }),
      TX.svg("text", { class: "soft middle", x, y: 13 }, `${Number((100 * p).toPrecision(8))}%`));
  }
  svg.append(TX.svg("text", { class: "soft end", x: left - 10, y: 13 }, "probability"));
};

// curve: {feature, x, y, at, prediction, slope, sd, column, levels, steps}; `words` names the vertical axis.
TX.curve = (width, packed, words) => {
  const curve = { ...packed, x: [...TX.unpack(packed.x)], y: [...TX.unpack(packed.y)], column: [...TX.unpack(packed.column)] };
  const height = 260, left = 62, bottom = 44, top = 10;
  const svg = TX.svg("svg", { class: "chart curve", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${words} as ${curve.feature} changes` });
  const tangent = curve.slope === null || curve.at === null ? [] : [-1, 1].map((side) => [curve.at + side * curve.sd, curve.prediction + side * curve.sd * curve.slope]);
  const ends = (list) => {
    const seen = list.filter(Number.isFinite), low = Math.min(...seen), high = Math.max(...seen), size = Math.max(Math.abs(low), Math.abs(high));
    const room = high - low > 1e-6 * size ? (high - low) * 0.06 : size * 0.1 || 0.5; // of less, only round-off is seen
    return [low - room, high + room];
  };
  const [x0, x1] = ends([...curve.x, curve.at ?? NaN]), [y0, y1] = ends([...curve.y, curve.prediction, ...tangent.map(([, y]) => y)]);
  const ax = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 12), ay = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - top);
  const ticks = TX.ticks(y0, y1), marks = TX.tickWords(ticks);
  ticks.forEach((tick, i) => svg.append(TX.svg("line", { class: "axis", x1: left, x2: width - 12, y1: ay(tick), y2: ay(tick) }), TX.svg("text", { class: "soft end", x: left - 6, y: ay(tick) + 4 }, marks[i])));
  const places = curve.levels.length ? curve.levels.map((_, i) => i) : TX.ticks(x0, x1, 5), every = Math.ceil((places.length * 76) / (width - left));
  const names = curve.levels.length ? curve.levels.map((level) => TX.shorten(level, 12)) : TX.tickWords(places);
  places.forEach((place, i) => { const x = Math.min(ax(place), width - TX.textWidth(names[i]) / 2); if (i % every === 0) svg.append(TX.svg("text", { class: "soft middle", x, y: height - bottom + 16 }, names[i])); });
  svg.append(TX.svg("text", { class: "middle", x: (left + width) / 2, y: height - 6 }, TX.fit(curve.feature, width - left - 20)));
  const jitter = curve.levels.length || curve.steps ? 6 : 0; // values of a discrete column side by side
  svg.append(TX.svg("path", { class: "rug", d: curve.column.map((x, i) => `M${(ax(x) + jitter * (((i * 0.618034) % 1) - 0.5) * 2).toFixed(1)} ${height - bottom}v-7`).join("") }));
  if (!curve.levels.length) svg.append(TX.svg("path", { class: curve.steps ? "line dotted" : "line", d: curve.x.map((x, i) => `${i ? "L" : "M"}${ax(x).toFixed(1)} ${ay(curve.y[i]).toFixed(1)}`).join("") }));
  if (curve.levels.length || curve.steps) curve.x.forEach((x, i) => svg.append(TX.svg("circle", { class: "dot", cx: ax(x), cy: ay(curve.y[i]), r: 4 })));
  if (tangent.length) svg.append(TX.svg("path", { class: "tangent", d: tangent.map(([x, y], i) => `${i ? "L" : "M"}${ax(x).toFixed(1)} ${ay(y).toFixed(1)}`).join("") }));
  if (curve.at !== null) svg.append(TX.svg("circle", { class: "here", cx: ax(curve.at), cy: ay(curve.prediction), r: 6 }));
  return svg;
};

"use strict";
// One row as people read it: the prediction on both scales, then each feature with its value, contribution and slope, and
// the reasons. Numbers follow the rules of Python's explanation/text.py, the table those of explanation/row.py.

const MARK = "*", FLAT = "flat";

TX.figure = (value, digits = 3) => {
  const size = Math.abs(value), minus = value < 0 ? "−" : "";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "missing" : `${minus}∞`;
  if (size > 0 && (size >= 1e9 || size < 1e-4)) return minus + size.toExponential(digits - 1).replace("e-", "e−");
  const places = size ? Math.max(0, digits - 1 - Math.floor(Math.log10(size))) : 0;
  return minus + size.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
};
TX.signed = (value, bound = NaN, smallest = Infinity) =>
  (value > 0 ? "+" : "") + TX.figure(value) + (Number.isFinite(bound) && bound > smallest ? ` ± ${TX.figure(bound, 1)}` : "");
TX.cellWords = (value) => {
  if (typeof value === "string") return value || "''";
  if (value === null || value === undefined || Number.isNaN(value)) return "missing";
  const size = Math.abs(value), minus = value < 0 ? "−" : "";
  if (size >= 1e12 || (size > 0 && size < 1e-3)) return minus + Number(size.toPrecision(3)).toExponential().replace("e-", "e−");
  if (size >= 1000 || Number.isInteger(value)) return minus + (size >= 1e4 ? Math.round(size).toLocaleString("en") : String(Math.round(size)));
  return minus + Number(size.toPrecision(4));
};
TX.share = (p) => (p > 0 && p < 0.001 ? "below 0.1%" : p > 0.999 && p < 1 ? "above 99.9%" : `${(100 * p).toFixed(1)}%`);
// A prediction as a probability where it is one; `scale` of a part is "log-odds", "probability" or another.
TX.plainly = (part, value) => {
  if (!Number.isFinite(value)) return "unknown";
  if (part.scale === "log-odds") return TX.share(1 / (1 + Math.exp(-value)));
  return part.scale === "probability" ? TX.share(value) : TX.figure(value, 4);
};
TX.onBothScales = (part, value) =>
  TX.plainly(part, value) + (part.scale === "log-odds" && Number.isFinite(value) ? ` (log-odds ${TX.figure(value)})` : "");

// A base value: a mean of log-odds is not the log-odds of the mean probability.
TX.baseWords = (part, value) => (part.scale === "log-odds" && Number.isFinite(value) ? `log-odds ${TX.figure(value)}` : TX.plainly(part, value));
TX.others = (count) => `${count.toLocaleString("en")} other feature${count === 1 ? "" : "s"}`;

// row: {names, cells, categorical, missing, columns: [{head, place, adds_up, flat, width, values, bounds, stability, relative_change, reason}]}
TX.rowTable = (row, { shown = 10, pick = null } = {}) => {
  const columns = [...row.columns].sort((a, b) => a.place - b.place);
  const largest = columns.map(({ values }) => Math.max(0, ...values.map((v) => Math.abs(v) || 0)));
  const flat = (c, f) => Boolean(columns[c].flat && columns[c].flat[f]);
  const words = (c, f) => {
    const { signed, marks_categories, values, bounds } = columns[c];
    if (flat(c, f)) return FLAT;
    const found = TX.signed(values[f], bounds[f], 1e-3 * largest[c]);
    return (signed ? found : found.replace("+", "")) + (row.categorical[f] && marks_categories ? MARK : "");
  };
  const size = (f) => Math.abs(columns[0].values[f]) || 0;
  const order = row.names.map((_, f) => f).sort((a, b) => size(b) - size(a) || a - b);
  const [near, far] = [order.slice(0, shown), order.slice(shown)];
  const bar = (f) => {
    const value = columns[0].values[f] || 0, share = largest[0] ? (50 * Math.abs(value)) / largest[0] : 0;
    return TX.el("div", { class: "spark" }, TX.el("i", { class: value < 0 ? "negative" : "positive", style: `width:${share}%;left:${value < 0 ? 50 - share : 50}%` }));
  };
  const line = (f) => TX.el("tr", { class: pick ? "pickable" : null, tabindex: pick ? 0 : null, "data-feature": row.names[f],
    onclick: pick ? () => pick(f) : null, onkeydown: pick ? (event) => { if (event.key === "Enter") pick(f); } : null },
  TX.el("th", { scope: "row", title: row.names[f] }, TX.shorten(row.names[f], 80)), TX.el("td", { class: typeof row.cells[f] === "number" ? "cell whole" : "cell" }, TX.shorten(TX.cellWords(row.cells[f]), 60)), TX.el("td", { class: "sparks" }, bar(f)),
  columns.map((_, c) => TX.el("td", { class: "number" }, words(c, f))));
  const heads = ["feature", "value", "", ...columns.map(({ head }) => head)];
  const rest = far.length ? TX.el("tr", { class: "soft" }, TX.el("td", {}, TX.others(far.length)), TX.el("td"), TX.el("td"), columns.map(({ adds_up, values }) =>
    TX.el("td", { class: "number" }, adds_up ? TX.signed(far.reduce((sum, f) => sum + (values[f] || 0), 0)) : ""))) : null;
  const notes = columns.filter(({ stability }) => stability).map(({ head, stability, relative_change, reason, flat }) =>
    `${head}: ${stability}` + (Number.isFinite(relative_change) ? `, changes by ${Math.round(100 * relative_change)}% if features move by 5% of an SD` : "") +
    (reason && !reason.startsWith("the values change") && !(flat && reason.startsWith("flat for")) ? ` (${reason})` : ""));
  if (columns.some((column) => column.marks_categories) && row.categorical.some(Boolean)) notes.push(`${MARK} a category: the prediction compared with its other categories`);
  columns.forEach(({ width }, c) => { if (near.some((f) => flat(c, f))) notes.push(`${FLAT}: no change for moves up to ${Number((Math.sqrt(6) * width).toPrecision(2))} SD; other values of the feature change the prediction`); });
  if (row.missing) notes.push(row.missing);
  return TX.el("div", { class: "two-columns" },
    TX.el("div", { class: "wide-table" }, TX.el("table", {}, TX.el("thead", {}, TX.el("tr", {}, heads.map((head, i) => TX.el("th", { scope: "col", class: i > 2 ? "number" : null }, head)))),
      TX.el("tbody", {}, near.map(line), rest))),
    notes.map((note) => TX.el("p", { class: "soft small note" }, note)));
};

// The features that pushed the prediction in one direction, the largest first; ranks are shared where bounds overlap.
TX.reasonsOf = (values, bounds, sign, most = 4) => {
  const order = Array.from(values, (_, f) => f).filter((f) => sign * values[f] > 0).sort((a, b) => sign * (values[b] - values[a]) || a - b);
  const size = (f) => sign * values[f], bound = (f) => bounds[f] || 0;
  let rank = 0, lowest = Infinity;
  const ranks = order.map((f, i) => {
    const highest = Math.max(...order.slice(i).map((g) => size(g) + bound(g)));
    if (i === 0 || lowest > highest) rank = i + 1;
    lowest = Math.min(lowest, size(f) - bound(f));
    return rank;
  });
  const found = order.slice(0, most).map((f, i) => ({ f, rank: ranks[i], tied: ranks.filter((r) => r === ranks[i]).length > 1, certain: !(size(f) <= bound(f)) }));
  const also = order.slice(most).filter((_, i) => ranks[most + i] === ranks[most - 1]);
  const rest = Array.from(values).reduce((sum, v) => sum + v, 0) - found.reduce((sum, { f }) => sum + values[f], 0);
  return { found, also, rest };
};

// names, cells, typical: per feature; column: the contributions {values, bounds}.
TX.reasonsTable = ({ names, cells, typical }, column, sign) => {
  if (!column) return TX.el("p", { class: "soft small" }, "Reasons are contributions (shapley), which are not in this explanation.");
  const { found, also, rest } = TX.reasonsOf(column.values, column.bounds, sign);
  if (!Array.from(column.values).every(Number.isFinite)) return TX.el("p", { class: "message" }, `undefined: ${column.reason || "its values are not numbers"}`);
  const value = (f) => TX.signed(column.values[f], column.bounds[f], 1e-4 * Math.abs(column.values[f]));
  const notes = [
    found.length ? "" : "no feature pushed the prediction in this direction",
    found.some(({ tied }) => tied) ? "= tied: the error bounds overlap, so that their order is not known" : "",
    also.length ? `tied with the last reason and not listed: ${also.map((f) => names[f]).join(", ")}` : "",
    found.some(({ certain }) => !certain) ? "? the error bound reaches 0: the direction is not certain" : "",
    `all other features together ${TX.signed(rest)}`,
  ].filter(Boolean);
  return TX.el("div", { class: "reasons-list" }, TX.el("div", { class: "wide-table" }, TX.el("table", {},
    TX.el("thead", {}, TX.el("tr", {}, ["rank", "reason", "value", "typical", "contribution"].map((head, i) => TX.el("th", { scope: "col", class: i > 3 ? "number" : null }, head)))),
    TX.el("tbody", {}, found.map(({ f, rank, tied, certain }) => TX.el("tr", {}, TX.el("td", {}, `${rank}${tied ? "=" : ""}${certain ? "" : "?"}`),
      TX.el("th", { scope: "row", title: names[f] }, TX.shorten(names[f], 80)), TX.el("td", { class: typeof cells[f] === "number" ? "whole" : null }, TX.shorten(TX.cellWords(cells[f]), 60)),
      TX.el("td", { class: typical && typeof typical[f] === "number" ? "soft whole" : "soft" }, typical && typical[f] !== null ? TX.shorten(TX.cellWords(typical[f]), 60) : ""), TX.el("td", { class: "number" }, value(f))))))),
  notes.map((note) => TX.el("p", { class: "soft small note" }, note)));
};

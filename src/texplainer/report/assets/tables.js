"use strict";
// A table that sorts by any column and shows the lines a filter lets through.
// columns: [{label, value(line), words(line), number}]; lines: any.

TX.table = (columns, lines, { pick = null, picked = () => false, chunk = 100, sort = null } = {}) => {
  let order = sort ? { ...sort } : { column: -1, down: false }, shown = lines, limit = chunk;
  const body = TX.el("tbody");
  const more = TX.el("button", { onclick: () => { limit += 10 * chunk; fill(); } });
  const heads = columns.map((column, index) => TX.el("th", { scope: "col", class: column.number ? "number" : null },
    TX.el("button", { onclick: () => by(index) }, column.label)));
  const node = TX.el("div", { class: "scroll", tabindex: 0 },
    TX.el("table", {}, TX.el("thead", {}, TX.el("tr", {}, heads)), body), more);
  const by = (index) => {
    order = { column: index, down: order.column === index ? !order.down : Boolean(columns[index].number) };
    fill();
  };
  const compare = (a, b) => {
    const { value } = columns[order.column];
    const [x, y] = [value(a), value(b)];
    if (Number.isNaN(x) || x === null) return 1; // missing goes last either way
    if (Number.isNaN(y) || y === null) return -1;
    return ((x > y) - (x < y)) * (order.down ? -1 : 1);
  };
  const fill = () => {
    const sorted = order.column < 0 ? shown : [...shown].sort(compare);
    heads.forEach((head, index) => head.setAttribute("aria-sort",
      index !== order.column ? "none" : order.down ? "descending" : "ascending"));
    heads.forEach((head, index) => {
      head.firstChild.textContent = columns[index].label + (index !== order.column ? "" : order.down ? " ↓" : " ↑");
    });
    body.replaceChildren(...sorted.slice(0, limit).map((line) => TX.el("tr", {
      class: [pick ? "pickable" : "", picked(line) ? "picked" : ""].join(" ").trim() || null,
      tabindex: pick ? 0 : null,
      onclick: pick ? () => pick(line) : null,
      onkeydown: pick ? (event) => { if (event.key === "Enter") pick(line); } : null,
    }, columns.map((column) => TX.el("td", { class: [column.number ? "number" : "", column.strong && column.strong(line) ? "strong" : ""].join(" ").trim() || null },
      column.chip && column.words(line) ? TX.el("span", { class: "chip " + column.words(line) }, column.words(line))
        : TX.shorten(column.words ? column.words(line) : TX.number(column.value(line)), 200))))));
    more.hidden = sorted.length <= limit;
    more.textContent = `show more of ${sorted.length.toLocaleString("en")}`;
  };
  fill();
  return { node, by, refresh: fill, show: (some) => { shown = some; limit = chunk; fill(); } };
};

// Facts in two columns.
TX.facts = (pairs) => TX.el("div", { class: "scroll" }, TX.el("table", {}, TX.el("tbody", {}, pairs.map(([name, value]) =>
  TX.el("tr", {}, TX.el("th", { scope: "row" }, name), TX.el("td", {}, value))))));

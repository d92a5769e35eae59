"use strict";
// Small helpers: elements, numbers, arrays, the tooltip. Text only ever becomes text nodes.
const TX = {};

// Without the marks that turn all text after them around: a name must not rewrite the number behind it.
TX.calm = (words) => words.replace(/[\u202a-\u202e]/g, "");

TX.make = (space) => (tag, attributes = {}, ...children) => {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child instanceof Node ? child : TX.calm(String(child)));
  }
  return node;
};
TX.el = TX.make(null);
TX.svg = TX.make("http://www.w3.org/2000/svg");

// Three significant digits for people, with a true minus.
TX.number = (value, signed = false) => {
  if (typeof value === "string") return value;
  if (value === null || Number.isNaN(value)) return "missing";
  const size = Math.abs(value);
  let words;
  if (!Number.isFinite(value)) words = "∞";
  else if (size >= 1e7 || (size > 0 && size < 1e-3)) words = size.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e").replace("e-", "e−");
  else if (size >= 1000) words = Math.round(size).toLocaleString("en");
  else words = String(Number(size.toPrecision(signed ? 3 : 4)));
  return (value < 0 ? "−" : signed ? "+" : "") + words;
};
// Cut between letters, never inside one; what is written from right to left stays apart from what follows.
TX.shorten = (name, length) => {
  const letters = [...name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")];
  const head = Math.floor(((length - 1) * 2) / 3), tail = letters.length - (length - 1 - head);
  const words = letters.length <= length ? letters.join("") : letters.slice(0, head).join("").trimEnd() + "…" + letters.slice(tail).join("").trimStart();
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(words) ? `\u2068${words}\u2069` : words;
};

// base64 of little-endian numbers -> a typed array
TX.unpack = (packed) => {
  if (!packed) return null;
  const text = atob(packed.bytes);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return packed.type === "f4" ? new Float32Array(bytes.buffer) : bytes;
};
TX.column = (column) => {
  if (!column.levels) return TX.unpack(column);
  return column.codes.map((code) => column.levels[code]);
};

TX.tip = (() => {
  let node = null;
  const place = (x, y) => {
    const box = node.getBoundingClientRect();
    node.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    node.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  };
  return {
    show(words, event) {
      if (!node) document.body.append((node = TX.el("div", { id: "tip", role: "status" })));
      node.textContent = TX.calm(words);
      node.classList.add("shown");
      const box = event.target.getBoundingClientRect ? event.target.getBoundingClientRect() : { left: 0, bottom: 0 };
      place(event.clientX ?? box.left + 20, event.clientY ?? box.bottom);
    },
    hide() { if (node) node.classList.remove("shown"); },
  };
})();
TX.hover = (words) => ({
  onmousemove: (event) => TX.tip.show(words(), event),
  onmouseleave: TX.tip.hide,
  onfocus: (event) => TX.tip.show(words(), event),
  onblur: TX.tip.hide,
});

// Draw now and again whenever the width changes, or the colours do: a canvas does not follow by itself.
// For paper everything has one width, whatever the window's, and the style sheet shrinks it.
TX.drawn = [];
TX.repaint = () => { for (const { holder, redraw } of TX.drawn) if (holder.isConnected) redraw(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", TX.repaint);
for (const [moment, on] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(moment, () => { document.documentElement.classList.toggle("printing", on); TX.repaint(); });
}
TX.responsive = (holder, draw) => {
  let last = 0;
  const redraw = () => {
    const printing = document.documentElement.classList.contains("printing");
    const width = printing ? (holder.closest(".curves") ? 420 : 720) : Math.floor(holder.clientWidth) || 460;
    if (width !== last) { last = width; holder.replaceChildren(draw(width)); }
  };
  new ResizeObserver(redraw).observe(holder);
  const again = { holder, redraw: () => { last = 0; redraw(); } };
  TX.drawn.push(again);
  return again;
};
TX.card = (title, ...children) => {
  const header = TX.el("header", {}, TX.el("h3", {}, title));
  return TX.el("section", { class: "card" }, header, ...children);
};
TX.select = (label, options, change) => {
  const picker = TX.el("select", { "aria-label": label, onchange: () => change(picker.selectedIndex) },
    options.map((option) => TX.el("option", {}, TX.shorten(option, 40))));
  return picker;
};
TX.ticks = (low, high, count = 4) => {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || rough;
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step);
  return out;
};
// Ticks all with the decimals their distance needs; far from 0 three digits may not tell them apart.
TX.tickWords = (ticks) => {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 0;
  const decimals = step ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : 0;
  const most = Math.max(...ticks.map(Math.abs));
  if (!step || decimals > 6 || most >= 1e7) return ticks.map((tick) => TX.number(tick));
  return ticks.map((tick) => (tick < -step / 2 ? "−" : "") + Math.abs(tick).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
};

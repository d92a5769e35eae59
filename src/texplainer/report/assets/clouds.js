"use strict";
// Many points at once, on a canvas: the beeswarm, and the dependence on one feature with its slopes.

TX.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
TX.blend = (share) => {
  const stops = ["--low", "--middle", "--high"].map((name) => TX.colour(name).split(",").map(Number));
  const [from, to, t] = share < 0.5 ? [stops[0], stops[1], share * 2] : [stops[1], stops[2], share * 2 - 1];
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * t)).join(",")})`;
};

// Share of the way from the lowest to the highest value, by rank, so that outliers do not wash the others out.
TX.ranks = (column) => {
  const plain = Array.from(column, (v) => v);
  const order = plain.map((_, i) => i).sort((a, b) => (plain[a] > plain[b]) - (plain[a] < plain[b]));
  const shares = new Float32Array(plain.length).fill(0.5);
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j + 1 < order.length && plain[order[j + 1]] === plain[order[i]]) j++;
    for (let k = i; k <= j; k++) shares[order[k]] = order.length > 1 ? (i + j) / 2 / (order.length - 1) : 0.5;
    i = j + 1;
  }
  return shares;
};

TX.canvas = (width, height) => {
  const canvas = TX.el("canvas", { class: "chart" });
  const sharp = Math.max(window.devicePixelRatio || 1, 2); // a page may be printed or enlarged
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  // The shape stays where the page is narrower than when it was drawn, as on paper.
  Object.assign(canvas.style, { maxWidth: width + "px", height: "auto", aspectRatio: `${width} / ${height}` });
  const pen = canvas.getContext("2d");
  pen.scale(sharp, sharp);
  pen.font = "12.5px system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif";
  return { canvas, pen };
};

// Points answer the mouse: the nearest one within reach is shown, a click picks its row.
TX.answer = (canvas, points, words, pick) => {
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect();
    let found = null, best = 12 ** 2;
    for (const point of points) {
      const d = (point.x - (event.clientX - box.left)) ** 2 + (point.y - (event.clientY - box.top)) ** 2;
      if (d < best) { best = d; found = point; }
    }
    return found;
  };
  canvas.addEventListener("mousemove", (event) => {
    const point = nearest(event);
    canvas.style.cursor = point ? "pointer" : "";
    if (point) TX.tip.show(words(point), event); else TX.tip.hide();
  });
  canvas.addEventListener("mouseleave", TX.tip.hide);
  canvas.addEventListener("click", (event) => { const point = nearest(event); if (point && pick) pick(point); });
};

// series: [{name, values, shares}]; points pile up where they are dense. Without shares (categories) they are grey.
TX.beeswarm = (width, series, { words, pick }) => {
  const line = 34, label = Math.min(width * 0.4, Math.max(...series.map(({ name }) => TX.textWidth(name))) + 12), height = series.length * line + 28;
  const { canvas, pen } = TX.canvas(width, height);
  let low = 0, high = 0;
  for (const { values } of series) for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
  if (low === high) { low = -1; high = 1; }
  const at = (v) => label + 10 + ((v - low) / (high - low)) * (width - label - 24);
  pen.textBaseline = "middle";
  pen.fillStyle = TX.colour("--soft");
  pen.textAlign = "center";
  const ticks = TX.ticks(low, high), marks = TX.tickWords(ticks);
  ticks.forEach((tick, i) => pen.fillText(marks[i], at(tick), height - 10));
  pen.strokeStyle = TX.colour("--neutral");
  pen.beginPath(); pen.moveTo(at(0), 0); pen.lineTo(at(0), height - 20); pen.stroke();
  const points = [];
  series.forEach(({ name, values, shares }, index) => {
    const y = index * line + line / 2;
    pen.fillStyle = TX.colour("--ink");
    pen.textAlign = "right";
    pen.fillText(TX.fit(name, label - 8), label - 4, y);
    const piles = new Map();
    for (let i = 0; i < values.length; i++) {
      if (!Number.isFinite(values[i])) continue;
      const bin = Math.round(at(values[i]) / 3), count = piles.get(bin) || 0;
      piles.set(bin, count + 1);
      const side = (count % 2 ? 1 : -1) * Math.ceil(count / 2);
      points.push({ x: at(values[i]), side, bin, row: i, series: index, share: shares ? shares[i] : null });
    }
    const tallest = Math.max(1, ...piles.values()), step = Math.min(2.6, (line - 8) / tallest);
    for (const point of points) if (point.series === index) point.y = y + point.side * step;
  });
  const grey = TX.colour("--neutral"), colours = Array.from({ length: 33 }, (_, i) => TX.blend(i / 32));
  for (const point of points) {
    pen.fillStyle = point.share === null ? grey : colours[Math.round(point.share * 32)];
    pen.beginPath(); pen.arc(point.x, point.y, 2.1, 0, 7); pen.fill();
  }
  TX.answer(canvas, points, words, pick);
  return canvas;
};

// One feature along x; through each point its slope, a short line.
TX.dependence = (width, { xs, ys, slopes, unstable, xName, yName, words, pick, picked }) => {
  const height = 300, bottom = 40, yLines = TX.lines(yName, height - bottom - 10, 2), left = 43 + 15 * yLines.length;
  const { canvas, pen } = TX.canvas(width, height);
  const levels = xs.some((x) => typeof x === "string") ? [...new Set(xs)].sort() : null;
  const apart = (i) => (((i * 0.618034) % 1) - 0.5) * 0.5; // points of one level side by side, the same way every time
  const place = levels ? xs.map((x, i) => levels.indexOf(x) + apart(i)) : xs;
  const range = (list) => {
    const seen = list.filter(Number.isFinite);
    const low = Math.min(...seen), high = Math.max(...seen), room = (high - low) * 0.05 || 0.5;
    return seen.length ? [low - room, high + room] : [0, 1];
  };
  const [x0, x1] = range(place), [y0, y1] = range(ys);
  const ax = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 12);
  const ay = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - 10);
  pen.textBaseline = "middle";
  pen.strokeStyle = TX.colour("--faint");
  pen.fillStyle = TX.colour("--soft");
  for (const tick of TX.ticks(y0, y1)) {
    pen.textAlign = "right"; pen.fillText(TX.number(tick), left - 8, ay(tick));
    pen.beginPath(); pen.moveTo(left, ay(tick)); pen.lineTo(width, ay(tick)); pen.stroke();
  }
  pen.textAlign = "center";
  const every = levels ? Math.ceil((levels.length * 84) / (width - left)) : 1; // words that would overlap are left out
  for (const tick of levels ? levels.map((_, i) => i).filter((i) => i % every === 0) : TX.ticks(x0, x1, 5)) {
    pen.fillText(levels ? TX.shorten(levels[tick], 12) : TX.number(tick), ax(tick), height - bottom + 12);
  }
  pen.fillText(TX.fit(xName, width - left - 12), (left + width) / 2, height - 8);
  pen.save(); pen.translate(10, (height - bottom) / 2); pen.rotate(-Math.PI / 2);
  yLines.forEach((line, i) => pen.fillText(line, 0, 15 * i)); pen.restore();
  const points = [];
  for (let i = 0; i < xs.length; i++) {
    if (!Number.isFinite(place[i]) || !Number.isFinite(ys[i])) continue;
    const point = { x: ax(place[i]), y: ay(ys[i]), row: i };
    points.push(point);
    pen.strokeStyle = pen.fillStyle = TX.colour(unstable[i] ? "--positive" : "--negative");
    pen.globalAlpha = i === picked ? 1 : 0.65;
    if (!levels && slopes && Number.isFinite(slopes[i])) { // nine pixels along the slope, whatever its steepness
      const rise = (slopes[i] * (x1 - x0) * (height - bottom - 10)) / ((y1 - y0) * (width - left - 12));
      const dx = 9 / Math.hypot(1, rise);
      pen.beginPath(); pen.moveTo(point.x - dx, point.y + dx * rise); pen.lineTo(point.x + dx, point.y - dx * rise); pen.stroke();
    }
    pen.beginPath(); pen.arc(point.x, point.y, i === picked ? 5 : 2.4, 0, 7); pen.fill();
  }
  pen.globalAlpha = 1;
  TX.answer(canvas, points, words, pick);
  return canvas;
};

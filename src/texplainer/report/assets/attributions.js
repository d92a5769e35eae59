"use strict";
// An attribution on a page: its question, its bars and its doubts. All words, units and signs come with its numbers.

TX.LEVEL = "◆"; // before a feature whose value is of another unit than the numbers'

// One feature of one row as an item of a chart. `found`: {value, error, slope, doubt}.
TX.item = (attribution, f, name, cell, found) => {
  const { value, error = NaN, slope = NaN, doubt = false } = found;
  const known = cell === undefined ? "" : ` = ${TX.cellWords(cell)}`, unit = attribution.units[f];
  const detail = typeof cell === "string" ? ` = ${TX.shorten(cell, 24)}` : known;
  const mark = attribution.levels && attribution.levels[f] ? `${TX.LEVEL} ` : "";
  return {
    name: mark + name, detail, feature: f, value, doubt, plain: !attribution.signed, error: Number.isFinite(error) ? error : 0,
    words: `${name}${known}\n${TX.number(value, attribution.signed)}` + (Number.isFinite(error) ? ` ± ${TX.number(error)}` : "") +
      (unit ? ` (${unit})` : "") + (Number.isFinite(slope) ? `\nslope ${TX.number(slope, true)} per unit` : "") +
      (doubt ? "\nthe model has a kink, a jump or noise here" : ""),
  };
};

// What the numbers mean; of a category too, where that differs.
TX.meaning = (attribution, output) => [attribution.axis[output], attribution.level_axis ? `${TX.LEVEL} ${attribution.level_axis[output]}` : ""].filter(Boolean).map(TX.calm).join("; ");

TX.sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

// One row: stacked up to f(x) if the values add up to it, side by side if not.
TX.drawRow = (width, attribution, items, { base, prediction, logOdds, most = 12 }) => {
  if (!items.every((item) => Number.isFinite(item.value))) return null;
  const folded = TX.fold(items, most, attribution.adds_up);
  return attribution.adds_up ? TX.waterfall(width, folded, { base, prediction, logOdds }) : TX.bars(width, folded, { signed: attribution.signed });
};

TX.percent = (share) => `${TX.number(Number((100 * share).toPrecision(2)))}%`;
// "unstable, relative_change 31%: kink in 'age'"
TX.stability = (chip, stability, relative_change, reason) => {
  chip.className = "chip " + stability;
  chip.title = "relative change: expected relative change of the values if every continuous feature moved by 5% of its SD";
  const known = relative_change !== null && Number.isFinite(relative_change) ? `, relative change ${TX.percent(relative_change)}` : "";
  chip.textContent = TX.calm(stability + known + (reason ? `: ${reason}` : ""));
};

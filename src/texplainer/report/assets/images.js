"use strict";
// A section per explanation of images: every image, in each attribution, under the attribution's question.

TX.sections.images = (part) => {
  const chips = [TX.el("span", { class: "chip" }, `${part.rows.toLocaleString("en")} images`)];
  for (const attribution of part.attributions) {
    chips.push(TX.el("span", { class: "chip" }, attribution.name));
    for (const [stability, count] of Object.entries(attribution.stability_labels)) {
      if (count) chips.push(TX.el("span", { class: "chip " + stability }, `${count.toLocaleString("en")} ${stability}`));
    }
  }
  const cards = part.images.flatMap((shown, i) => shown.map((one, k) => {
    const card = TX.card(part.attributions[k].question,
      TX.el("p", { class: "soft small what" }, `Image ${part.kept[i]}: ${one.prediction}.${one.reason ? ` ${TX.sentence(one.reason)}.` : ""}`),
      TX.el("img", { class: "picture", src: one.picture, alt: `image ${part.kept[i]}, its segments by ${part.attributions[k].name}` }));
    if (one.stability) card.querySelector("header").append(TX.el("span", { class: "chip " + one.stability }, one.stability));
    return card;
  }));
  return [TX.el("div", { class: "chips" }, chips),
    part.kept.length < part.rows ? TX.el("p", { class: "soft small" }, `To keep the page small, it contains ${part.kept.length} of the ${part.rows.toLocaleString("en")} images, evenly spaced.`) : null,
    part.missing ? TX.el("p", { class: "soft small missing" }, part.missing) : null,
    TX.el("div", { class: "grid" }, ...cards, TX.card("What was run", TX.facts(part.facts)))];
};

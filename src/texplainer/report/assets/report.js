"use strict";
// The report: one section per explanation or evaluation.

TX.report = (content) => {
  const page = document.getElementById("page");
  page.replaceChildren(TX.el("h1", {}, content.title));
  for (const part of content.parts) {
    if (part.name) page.append(TX.el("h2", {}, part.name));
    page.append(TX.el("section", { class: part.kind }, ...TX.sections[part.kind](part).filter(Boolean)));
  }
  if (content.pictures.length) {
    page.append(TX.el("h2", {}, "Pictures"), TX.el("div", { class: "grid" }, content.pictures.map(({ caption, svg }) =>
      TX.card(caption, TX.el("img", { class: "picture", src: svg, alt: caption })))));
  }
  page.append(TX.el("footer", {}, "Made by texplainer. This file is self-contained: it does not load or send any data."));
};
TX.report(JSON.parse(document.getElementById("content").textContent));

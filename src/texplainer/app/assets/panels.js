"use strict";
// A panel of one row: changes that would move the prediction.

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

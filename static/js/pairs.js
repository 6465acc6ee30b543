// The table of pairs by keyboard, and how many are selected. Without this script, boxes and buttons do the same.
"use strict";
(() => {
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  const boxes = () => $$("table.pairs tbody input[name=pair]");
  const links = () => $$("table.pairs tbody th a");

  function count() {
    const told = document.querySelector("#selected-count");
    if (!told) return;
    const all = document.querySelector("#select-all").checked;
    const n = boxes().filter((box) => box.checked).length;
    const page = document.querySelector("#select-page");
    page.checked = n > 0 && n === boxes().length;
    page.indeterminate = n > 0 && n < boxes().length;
    boxes().forEach((box) => box.closest("tr").classList.toggle("selected", all || box.checked));
    told.textContent = all ? document.querySelector("#select-all").parentElement.textContent.trim()
      : n ? told.dataset.some.replace("N", n) : told.dataset.none;
  }
  function show() {
    $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
    count();
  }
  function move(step) {
    const all = links();
    const at = all.indexOf(document.activeElement?.closest("tr")?.querySelector("th a"));
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    all[next]?.focus();
  }
  const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

  document.addEventListener("change", (event) => {
    if (event.target.id === "select-page") boxes().forEach((box) => { box.checked = event.target.checked; });
    if (event.target.matches("#select-page, #select-all, input[name=pair]")) count();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    const row = document.activeElement?.closest("table.pairs tbody tr");
    if (event.key === "/") {
      document.querySelector("#q").closest("details").open = true;
      document.querySelector("#q").focus();
    }
    else if (event.key in STEPS && (event.key.length === 1 || row)) move(STEPS[event.key]);
    else if (event.key === "x" && row) row.querySelector("input[name=pair]").click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("htmx:afterSettle", show);
  show();
})();

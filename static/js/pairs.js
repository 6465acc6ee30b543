// The table of pairs by keyboard, how many are selected, and the pair beside the table. Without this script, boxes and
// buttons do the same, and a pair opens as a page.
"use strict";
(() => {
  const $ = (selector) => document.querySelector(selector);
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  const boxes = () => $$("table.pairs tbody input[name=pair]");
  const links = () => $$("table.pairs tbody th a");
  const panel = $("#pair-panel");
  const isBeside = matchMedia("(min-width: 64rem)");

  function count() {
    const told = $("#selected-count");
    if (!told) return;
    const all = $("#select-all").checked;
    const n = boxes().filter((box) => box.checked).length;
    const page = $("#select-page");
    page.checked = n > 0 && n === boxes().length;
    page.indeterminate = n > 0 && n < boxes().length;
    boxes().forEach((box) => box.closest("tr").classList.toggle("selected", all || box.checked));
    told.textContent = all ? $("#select-all").parentElement.textContent.trim()
      : n ? told.dataset.some.replace("N", n) : told.dataset.none;
  }
  function show() {
    $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
    count();
    if (panel && !panel.hidden && !openRow()) close(); // the list has other pairs now
    mark();
    // For the page of a pair, which leads to the one before and after it.
    if (links().length) sessionStorage.setItem("pairs", JSON.stringify(links().map((link) => link.pathname)));
  }

  // The pair beside the table
  const openRow = () => (panel && !panel.hidden ? boxes().find((box) => box.value === panel.dataset.pair)?.closest("tr") : null);
  function mark() {
    $$("table.pairs tr.shown").forEach((row) => row.classList.remove("shown"));
    openRow()?.classList.add("shown");
  }
  function open(link) {
    panel.dataset.pair = link.closest("tr").querySelector("input[name=pair]").value;
    htmx.ajax("GET", link.href, { source: panel, target: panel });
  }
  function close() {
    const link = openRow()?.querySelector("th a");
    panel.hidden = true;
    panel.replaceChildren();
    document.body.classList.remove("pair-beside");
    mark();
    link?.focus();
  }
  function move(step) {
    const all = links();
    const row = openRow() || document.activeElement?.closest("tr");
    const at = all.indexOf(row?.querySelector("th a"));
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step;
    if (next < 0 || next >= all.length) {
      // Beyond the page: the neighbouring page of the list.
      if (openRow()) $(`#pair-list a[rel=${step > 0 ? "next" : "prev"}]`)?.click();
      return;
    }
    if (openRow()) {
      open(all[next]);
      all[next].closest("tr").scrollIntoView({ block: "nearest" });
      if (!panel.contains(document.activeElement)) all[next].focus({ preventScroll: true });
    } else all[next].focus();
  }
  const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("table.pairs tbody th a");
    const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button);
    if (link && panel && isPlain && isBeside.matches) {
      event.preventDefault();
      open(link);
    }
    const button = event.target.closest("#pair-panel [data-move]");
    if (button) move(Number(button.dataset.move));
    if (event.target.closest("#pair-panel [data-close]")) close();
    $$("details.menu-of[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "select-page") boxes().forEach((box) => { box.checked = event.target.checked; });
    if (event.target.matches("#select-page, #select-all, input[name=pair]")) count();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      const menu = $("details.menu-of[open]");
      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      } else if (openRow()) close();
      return;
    }
    if (!$("table.pairs") || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    const row = document.activeElement?.closest("table.pairs tbody tr");
    if (event.key === "/") {
      $("#q").closest("details").open = true;
      $("#q").focus();
    }
    else if (event.key in STEPS && (event.key.length === 1 || row)) move(STEPS[event.key]);
    else if (event.key === "x" && (row || openRow())) (row || openRow()).querySelector("input[name=pair]").click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("htmx:configRequest", (event) => {
    // Filters that are not set stay out of the address.
    if (event.target.matches(".filters")) {
      for (const [name, value] of [...event.detail.formData]) if (!value) event.detail.formData.delete(name);
    }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const toggle = event.detail.requestConfig?.triggeringEvent?.submitter;
    if (toggle?.matches("#columns-menu button") && event.detail.successful) toggle.ariaPressed = toggle.ariaPressed !== "true";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === panel && event.detail.requestConfig.verb === "get") {
      const isNew = panel.hidden;
      panel.hidden = false;
      panel.scrollTop = 0;
      document.body.classList.add("pair-beside");
      if (isNew || !document.activeElement || document.activeElement === document.body) $("#panel-h").focus({ preventScroll: true });
    }
  });
  document.addEventListener("htmx:afterSettle", show);
  show();

  const moves = $("nav.panel-moves");
  if (moves) {
    const all = JSON.parse(sessionStorage.getItem("pairs") || "[]");
    const at = all.indexOf(location.pathname);
    for (const [rel, place] of [["prev", at - 1], ["next", at + 1]]) {
      const link = moves.querySelector(`[rel=${rel}]`);
      if (at >= 0 && all[place]) link.href = all[place];
      else link.hidden = true;
    }
    moves.hidden = at < 0;
  }
})();

// A whole query with scripts: the current document, one key for each, the next one by itself. Without this file every
// form still works.
"use strict";

(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const calm = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
  const store = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const keys = keymap("quorum.keymap"); // changed in the help of the desk
  const IDLE_AFTER = 60 * 1000;
  const SEND_AGAIN = 4000;
  const NOT_READ_YET = 500;
  const cards = () => $$(".pair-card");
  const open = () => $$(".pair-card[data-open]");
  let current = null;
  let shownAt = performance.now();
  let touchedAt = shownAt;
  let idle = 0;
  let undoable = [];

  function choose(card, focus) {
    if (!card) return;
    if (card !== current) { shownAt = touchedAt = performance.now(); idle = 0; }
    cards().forEach((one) => one.classList.toggle("current", one === card));
    current = card;
    if (focus) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "nearest", behavior: calm() });
    }
  }

  function move(by) {
    const all = open();
    if (!all.length) return;
    const here = all.indexOf(current);
    choose(all[(here + by + all.length) % all.length], true);
  }

  function tell() {
    const progress = $("#progress");
    if (!progress) return;
    const all = cards().length;
    const left = open().length;
    progress.textContent = progress.parentElement.dataset.progress.replace("N", all - left).replace("M", all);
    $("#next-query").hidden = left > 0;
    if (!left) $("#next-query button").focus();
  }

  function trouble(words) {
    const notice = $("#trouble");
    notice.hidden = !words;
    notice.textContent = words;
  }

  function touched() {
    const now = performance.now();
    if (now - touchedAt > IDLE_AFTER) idle += now - touchedAt;
    touchedAt = now;
  }
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "scroll"]) document.addEventListener(kind, touched, { passive: true, capture: true });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return touched();
    idle += performance.now() - touchedAt;
    touchedAt = performance.now();
  });

  // What is folded away has rectangles, and yet nobody sees it.
  const seen = (one) => (one.checkVisibility ? one.checkVisibility() : one.getClientRects().length > 0);
  const typing = (target) => target.matches("textarea, select, input:not([type=checkbox], [type=radio])");
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (typing(event.target) || store("quorum.keys") === "off") return;
    const key = keys.madeFor(event.key);
    if (key === null) return;
    if (key === "j" || key === "k") { event.preventDefault(); return move(key === "j" ? 1 : -1); }
    if (key === "u" && undoable.length) { event.preventDefault(); return $(`#${undoable[undoable.length - 1]} [data-undo]`)?.click(); }
    const places = [current?.matches("[data-open]") ? current : null, document].filter(Boolean);
    const goal = places.map((place) => $$(`[data-key="${CSS.escape(key)}"]`, place).find((one) => seen(one) && (place !== document || !one.closest(".pair-card")))).find(Boolean);
    if (!goal) return;
    event.preventDefault();
    if (goal.matches("summary")) goal.parentElement.open = !goal.parentElement.open;
    else if (goal.matches("input")) goal.focus();
    else goal.click();
  });
  document.addEventListener("focusin", (event) => choose(event.target.closest(".pair-card[data-open]")));
  document.addEventListener("pointerdown", (event) => choose(event.target.closest(".pair-card[data-open]")));

  // Where a debate was just revealed, the second half of a double click is no final vote: nobody reads that fast.
  document.addEventListener("click", (event) => {
    const card = event.target.closest(".grade") && event.target.closest(".pair-card[data-step=final]");
    if (card && performance.now() - (card.revealedAt ?? -Infinity) < NOT_READ_YET) { event.preventDefault(); event.stopPropagation(); }
  }, true);
  document.addEventListener("htmx:configRequest", (event) => {
    touched();
    Object.assign(event.detail.parameters, { milliseconds: String(Math.round(performance.now() - shownAt)), idle: String(Math.round(idle)) });
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    keys.write();
    trouble("");
    const id = event.detail.requestConfig?.parameters?.item;
    const card = document.getElementById(`pair-${id}`);
    if (!card) return;
    undoable = undoable.filter((one) => one !== card.id);
    if (card.matches("[data-open]")) {
      card.revealedAt = performance.now();
      choose(card, true);
    } else {
      if ($("[data-undo]", card)) undoable.push(card.id);
      const after = open().find((one) => card.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) || open()[0];
      if (after) choose(after, true);
    }
    $("#announce").textContent = $("h2", current || card)?.textContent || "";
    tell();
  });
  // A lost connection: the answer is sent again; its token makes it count once.
  const kept = new Map();
  document.addEventListener("htmx:sendError", (event) => {
    const { path, parameters, elt } = event.detail.requestConfig;
    const card = elt.closest(".pair-card");
    trouble($("#trouble").dataset.offline);
    if (!card) return;
    kept.set(card.id, { path, values: Object.fromEntries(Object.entries(parameters)) });
    setTimeout(sendKept, SEND_AGAIN);
  });
  function sendKept() {
    for (const [id, { path, values }] of kept) {
      kept.delete(id);
      htmx.ajax("POST", path, { source: `#${id} form`, target: `#${id}`, swap: "outerHTML", values });
    }
  }
  addEventListener("online", sendKept);
  document.addEventListener("htmx:responseError", () => trouble($("#trouble").dataset.failed));

  if (window.htmx) window.htmx.config.timeout = 20000;
  choose(open()[0], false);
  tell();
})();

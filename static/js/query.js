// A whole query with scripts: the current document, one key for each, the next one by itself. Without this file every
// form still works.
"use strict";

(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const calm = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
  const store = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const keys = keymap("quorum.keymap"); // changed in the help of the desk
  const SEND_AGAIN = 4000;
  const cards = () => $$(".pair-card");
  const open = () => $$(".pair-card[data-open]");
  let current = null;
  let undoable = [];

  // Whoever presses a button of another card has read that card meanwhile: its time goes on.
  function choose(card, focus, goesOn) {
    if (!card) return;
    if (card !== current && !goesOn) pace.begin();
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
    if (pace.rests(goal)) return pace.tooFast();
    if (goal.matches("summary")) goal.parentElement.open = !goal.parentElement.open;
    else if (goal.matches("input")) goal.focus();
    else goal.click();
  });
  for (const kind of ["focusin", "pointerdown"]) document.addEventListener(kind, ({ target }) => choose(target.closest(".pair-card[data-open]"), false, target.closest("[data-rests]")));

  document.addEventListener("htmx:configRequest", (event) => {
    Object.assign(event.detail.parameters, pace.measure());
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    keys.write();
    trouble("");
    const id = event.detail.requestConfig?.parameters?.item;
    const card = document.getElementById(`pair-${id}`);
    if (!card) return;
    undoable = undoable.filter((one) => one !== card.id);
    if (card.matches("[data-open]")) {
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
  const keep = (event) => {
    const { path, parameters, elt } = event.detail.requestConfig;
    const card = elt.closest(".pair-card");
    trouble($("#trouble").dataset.offline);
    if (!card) return;
    kept.set(card.id, { path, values: Object.fromEntries(Object.entries(parameters)) });
    setTimeout(sendKept, SEND_AGAIN);
  };
  document.addEventListener("htmx:sendError", keep);
  function sendKept() {
    for (const [id, { path, values }] of kept) {
      kept.delete(id);
      htmx.ajax("POST", path, { source: `#${id} form`, target: `#${id}`, swap: "outerHTML", values });
    }
  }
  addEventListener("online", sendKept);
  document.addEventListener("htmx:responseError", (event) => {
    if ([502, 503, 504].includes(event.detail.xhr.status)) keep(event); // nothing was saved: it is sent again
    else trouble($("#trouble").dataset.failed);
  });

  if (window.htmx) window.htmx.config.timeout = 20000;
  choose(open()[0], false);
  tell();
})();

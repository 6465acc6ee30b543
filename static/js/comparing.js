// Comparing with scripts: keys, and the next comparison is on the page before it is wanted. Answers are sent behind it,
// in their order. Without this file every form still works.
"use strict";

(() => {
  const AGAIN_AFTER = 4000;
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* forbidden or full */ } },
  };
  const form = $("#answer");
  const cards = $("#cards");
  const say = $("#trouble").dataset;
  const nameOf = (card) => `${card.dataset.set}/${card.dataset.comparison}`;
  const shown = () => $(".comparison:not([hidden])");
  const answered = new Set();
  const unsent = []; // answers in their order; the first is being sent
  let sending = false;

  function trouble(words) {
    const notice = $("#trouble");
    notice.textContent = words;
    notice.hidden = !words;
  }

  // The comparison that comes next, once it is there.
  function show() {
    const card = $(".comparison");
    if (!card || !card.hidden) return;
    card.hidden = false;
    form.elements.set.value = card.dataset.set;
    form.elements.comparison.value = card.dataset.comparison;
    pace.begin();
    form.inert = false;
    scrollTo({ top: 0, behavior: "instant" });
    $("#announce").textContent = $("h1", card).textContent;
  }

  function answer(button) {
    const card = shown();
    if (!card) return;
    if (pace.isFresh()) return pace.tooFast();
    const { milliseconds, idle } = pace.measure();
    form.elements.seconds.value = ((milliseconds - idle) / 1000).toFixed(3);
    unsent.push(new URLSearchParams(new FormData(form, button)));
    answered.add(nameOf(card));
    card.remove();
    count(Number($("#answered").textContent) + 1);
    $("button[form=undo]").hidden = false;
    form.inert = true;
    show();
    send();
  }

  function count(number, total) {
    $("#answered").textContent = number;
    if (total) $("#total").textContent = $("#progress").max = total;
    $("#progress").value = number;
  }

  async function send() {
    if (sending || !unsent.length) return;
    sending = true;
    let response = null;
    try {
      response = await fetch(form.action, { method: "POST", body: unsent[0], headers: { "HX-Request": "true" } });
    } catch { /* no connection */ }
    sending = false;
    if (!response || [502, 503, 504].includes(response.status)) {
      trouble(say.offline);
      setTimeout(send, AGAIN_AFTER);
      return;
    }
    unsent.shift();
    if (!response.ok && ![409, 422].includes(response.status)) {
      if (response.status === 401) location.reload();
      unsent.length = 0;
      return trouble(say.failed);
    }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#cards");
    if (!fresh) return location.reload(); // another page answered: of a pause, or of the end
    trouble(fresh.dataset.problem || "");
    take(fresh);
    send();
  }

  // What the page does not have yet, behind what it has.
  function take(fresh) {
    const here = new Set($$(".comparison").map(nameOf));
    for (const card of $$(".comparison", fresh)) {
      if (here.has(nameOf(card)) || answered.has(nameOf(card))) continue;
      card.hidden = true;
      cards.append(card);
    }
    if (!unsent.length) count(fresh.dataset.answered, fresh.dataset.total);
    show();
    if (!$(".comparison") && !unsent.length) location.reload();
  }

  // Keys
  const keysOn = () => store.get("quorum.keys") !== "off";
  const typing = (target) => target.matches("textarea, select, input:not([type=checkbox])");
  // An arrow scrolls a wide table first.
  const scrolls = (target) => target.closest?.(".text.formatted")?.scrollWidth > target.closest?.(".text.formatted")?.clientWidth;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") $$("details.sheet[open]").forEach((sheet) => { sheet.open = false; });
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target) || !keysOn()) return;
    if (event.key.startsWith("Arrow") && scrolls(event.target)) return;
    const key = CSS.escape(event.key);
    const element = $$(`[data-key="${key}"], [data-also="${key}"]`).find((button) => button.checkVisibility?.() ?? !button.hidden);
    if (!element) return;
    event.preventDefault();
    if (element.matches(".grade")) answer(element);
    else if (element.getAttribute("form") === "undo") undo();
    else element.click();
  });
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(event.submitter);
  });

  // After what is on its way, or it would undo the answer before.
  function undo() {
    if (sending || unsent.length) return setTimeout(undo, 50);
    $("#undo").submit();
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("button[form=undo]")) { event.preventDefault(); undo(); }
    $$("details.sheet[open]").filter((sheet) => !sheet.contains(event.target)).forEach((sheet) => { sheet.open = false; });
  });
  addEventListener("online", send);
  addEventListener("beforeunload", (event) => { if (unsent.length) event.preventDefault(); });

  // Start
  const choice = $("#keys-on");
  choice.checked = keysOn();
  choice.addEventListener("change", () => store.set("quorum.keys", choice.checked ? "on" : "off"));
  $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
  $$("[data-key]").forEach((element) => {
    element.setAttribute("aria-keyshortcuts", element.dataset.key);
    $$("kbd", element).forEach((kbd) => kbd.setAttribute("aria-hidden", "true"));
  });
})();

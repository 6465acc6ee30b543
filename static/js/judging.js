// The desk with scripts: keys, quoted sentences, drafts, the lease's last minute. Without this file every form still works.
"use strict";

(() => {
  const SAID_FOR = 8000;
  const DRAFT_FOR = 24 * 3600 * 1000;
  const NOT_READ_YET = 500;
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const smooth = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
  let shownAt = performance.now();
  let leaseEnds = Infinity;
  let lit = -1;
  const say = $("#trouble")?.dataset || {}; // what this script says, in the language of the page

  // Storage may be forbidden: then nothing is remembered, and nothing breaks.
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* forbidden or full */ } },
    drop(key) { try { localStorage.removeItem(key); } catch { /* forbidden */ } },
    keys() { try { return Object.keys(localStorage); } catch { return []; } },
  };

  // --- Keys -------------------------------------------------------------------------------------------------
  const keysOn = () => store.get("quorum.keys") !== "off";
  const typing = (target) => target.matches("textarea, select, input:not([type=checkbox], [type=radio])") || target.isContentEditable;
  const seen = (element) => element.getClientRects().length > 0;

  function target(key) {
    const open = $("details.sheet[data-keys][open]");
    if (open) {
      const inside = $$(`[data-key="${CSS.escape(key)}"]`, open).find(seen);
      if (inside) return inside;
      if (/^\d$/.test(key)) return null; // a digit belongs to the open panel, never to a grade behind it
    }
    return $$(`[data-key="${CSS.escape(key)}"]`).find((element) => seen(element) && !element.disabled);
  }

  function toggle(summary) {
    const sheet = summary.parentElement;
    sheet.open = !sheet.open;
    if (sheet.open) ($("textarea, .panel button", sheet) || $(".panel", sheet)).focus();
    else summary.focus();
  }

  function closeSheets(except) {
    const open = $$("details.sheet[open]").filter((sheet) => sheet !== except);
    open.forEach((sheet) => { sheet.open = false; });
    return open;
  }

  function press(element) {
    if (element.matches("summary")) return toggle(element);
    if (element.matches("textarea")) return element.focus();
    if (element.matches(".grade")) element.classList.add("pressed");
    element.click();
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Escape") {
      const closed = closeSheets();
      if (closed.length) $("summary", closed[0]).focus();
      else if (typing(event.target)) event.target.blur();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && typing(event.target)) {
      const panel = event.target.closest(".panel") || document.createElement("i");
      const button = event.target.matches("[data-edit]") ? $("#answer [data-save]") : $("[data-enter]", panel);
      if (button) { event.preventDefault(); button.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target) || !keysOn()) return;
    const moves = { j: () => light(1), k: () => light(-1), d: toDebate };
    const element = moves[event.key] ? null : target(event.key);
    if (!moves[event.key] && !element) return;
    event.preventDefault();
    if (element) press(element);
    else moves[event.key]();
  });

  // --- Quoted sentences and the debate ----------------------------------------------------------------------
  function lightUp(label) {
    $$("mark.lit").forEach((mark) => mark.classList.remove("lit"));
    const marks = $$(".document mark").filter((mark) => mark.dataset.quotes && mark.dataset.quotes.split(" ").includes(label));
    marks.forEach((mark) => mark.classList.add("lit"));
    if (!marks.length) return;
    const tag = document.getElementById(`quote-${label}`) || marks[0];
    tag.scrollIntoView({ block: "center", behavior: smooth() });
    tag.focus({ preventScroll: true });
    lit = $$(".document .tag").indexOf(tag);
  }

  function light(step) {
    const tags = $$(".document .tag");
    if (!tags.length) return;
    lit = (lit + step + tags.length) % tags.length;
    lightUp(tags[lit].textContent);
  }

  function toDebate() {
    const debate = $("#debate");
    if (!debate) return;
    const there = debate.contains(document.activeElement);
    const goal = there ? $("#query") : debate;
    (there ? $(".document") : debate).scrollIntoView({ block: there ? "end" : "start", behavior: smooth() });
    goal.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#quote-"], a[href^="#by-"]');
    if (link) {
      event.preventDefault();
      const id = link.getAttribute("href").slice(1);
      if (id.startsWith("quote-")) return lightUp(id.slice(6));
      const turn = document.getElementById(id);
      turn?.scrollIntoView({ block: "center", behavior: smooth() });
      turn?.focus({ preventScroll: true });
    }
    if (!event.target.closest("details.sheet")) closeSheets();
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.sheet[open]")) closeSheets(event.target);
  }, true);

  // --- Drafts: what is typed stays on this device, for this pair and person only -------------------------------
  const draftKey = (desk) => `quorum.draft.${location.pathname}.${desk.dataset.member}.${desk.dataset.item}`;
  const ofAnswer = (field) => field.matches("textarea") && field.form?.id === "answer";
  const fields = (desk) => $$("textarea", desk).filter(ofAnswer);

  function keepDraft(desk) {
    const typed = Object.fromEntries(fields(desk).map((field) => [field.name, field.value]));
    if (Object.values(typed).some(Boolean)) store.set(draftKey(desk), JSON.stringify({ at: Date.now(), typed }));
    else store.drop(draftKey(desk));
    sayWritten(desk);
  }

  function bringDraft(desk) {
    let draft = null;
    try { draft = JSON.parse(store.get(draftKey(desk))); } catch { /* not ours */ }
    for (const field of fields(desk)) {
      // A text that is edited is there from the start: what was typed into it comes back all the same.
      if (draft && (!field.value || field.matches("[data-edit]"))) field.value = draft.typed[field.name] ?? field.value;
    }
    sayWritten(desk);
  }

  function sayWritten(desk) {
    const written = $("#comment .written", desk);
    if (written) written.hidden = !$("#comment-text", desk).value.trim();
  }

  function forgetOldDrafts() {
    for (const key of store.keys().filter((name) => name.startsWith("quorum.draft."))) {
      let at = 0;
      try { at = JSON.parse(store.get(key)).at; } catch { /* broken: drop it */ }
      if (Date.now() - at > DRAFT_FOR) store.drop(key);
    }
  }

  document.addEventListener("input", (event) => {
    const desk = $("#desk[data-item]");
    if (desk && ofAnswer(event.target)) keepDraft(desk);
  });

  // --- The lease, mentioned in its last minute only --------------------------------------------------------------
  function showLease() {
    const notice = $("#lease");
    const left = Math.round((leaseEnds - performance.now()) / 1000);
    if (!notice || left > 60) return;
    notice.hidden = false;
    const words = left < 1 ? say.over : left === 1 ? say.second : say.seconds.replace("N", left);
    if ($("#lease-words").textContent !== words) $("#lease-words").textContent = words;
  }
  setInterval(showLease, 1000);

  // --- A new pair on the desk -------------------------------------------------------------------------------------
  function arrive(desk, swapped) {
    shownAt = performance.now();
    lit = -1;
    const seconds = Number(desk.dataset.seconds);
    leaseEnds = desk.dataset.seconds ? shownAt + seconds * 1000 : Infinity;
    bringDraft(desk);
    const said = desk.dataset.said;
    if (swapped) {
      scrollTo({ top: 0 });
      const debate = desk.dataset.step === "final" && $("#debate");
      if (debate) debate.scrollIntoView({ block: "start", behavior: "instant" });
      (debate || $("#query"))?.focus({ preventScroll: true });
      $("#announce").textContent = `${said || ""} ${$("#query")?.textContent || ""}`.trim();
    }
    setTimeout(() => $$("[data-fades]", desk).forEach((element) => element.remove()), SAID_FOR);
  }

  const trouble = (words) => {
    const notice = $("#trouble");
    if (!notice) return;
    notice.hidden = !words;
    notice.textContent = words;
    if (words) {
      $$(".grade.pressed").forEach((grade) => grade.classList.remove("pressed"));
      notice.scrollIntoView({ block: "nearest" });
    }
  };

  // Where the debate was just revealed, the second half of a double click is no final vote: nobody reads that fast.
  document.addEventListener("click", (event) => {
    const hasty = $("#desk[data-step=final]") && performance.now() - shownAt < NOT_READ_YET;
    if (hasty && event.target.closest(".grade")) { event.preventDefault(); event.stopPropagation(); }
  }, true);
  document.addEventListener("submit", stampTime, true);
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.matches(".grade")) event.detail.parameters.milliseconds = timeOnPage();
  });
  const timeOnPage = () => String(Math.round(performance.now() - shownAt));
  function stampTime(event) {
    const field = $("input[name=milliseconds]", event.target);
    if (field) field.value = timeOnPage();
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const desk = $("#desk[data-item]");
    if (event.detail.successful) {
      trouble("");
      const sent = event.detail.requestConfig?.parameters?.item;
      if (desk && sent && event.detail.xhr.status === 200) store.drop(`quorum.draft.${location.pathname}.${desk.dataset.member}.${sent}`);
    }
  });
  document.addEventListener("htmx:sendError", () => trouble(say.offline));
  document.addEventListener("htmx:timeout", () => trouble(say.silent));
  document.addEventListener("htmx:responseError", () => trouble(say.failed));
  document.addEventListener("htmx:afterSwap", () => {
    const desk = $("#desk");
    if (desk) arrive(desk, true);
  });

  // --- Start --------------------------------------------------------------------------------------------------------
  const choice = $("#keys-on");
  if (choice) {
    choice.checked = keysOn();
    choice.addEventListener("change", () => store.set("quorum.keys", choice.checked ? "on" : "off"));
    $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
  }
  if (window.htmx) window.htmx.config.timeout = 20000;
  forgetOldDrafts();
  const desk = $("#desk");
  if (desk) arrive(desk, false);
})();

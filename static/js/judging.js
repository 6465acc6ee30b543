// The desk with scripts: keys, quoted sentences, own evidence, drafts, the lease's last minute, lost connections.
// Without this file every form still works.
"use strict";

(() => {
  const SAID_FOR = 8000;
  const DRAFT_FOR = 24 * 3600 * 1000;
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const smooth = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
  const DRAFT_AFTER = 1000;
  const AGAIN_AFTER = 4000;
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

  // Keys
  const keysOn = () => store.get("quorum.keys") !== "off";
  const typing = (target) => target.matches("textarea, select, input:not([type=checkbox], [type=radio])") || target.isContentEditable;
  // What is folded away has rectangles, and yet nobody sees it.
  const drawn = (element) => (element.checkVisibility ? element.checkVisibility() : element.getClientRects().length > 0);
  // On a narrow page the other actions wait behind a button: their keys open it.
  const seen = (element) => drawn(element) || (element.matches("#others > .button, #others > .sheet > summary") && drawn($(".more")));

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
    // Into the text field or onto the panel itself: never onto a button that gives the pair away or resets something.
    const panel = $("textarea", sheet) || $(".panel", sheet);
    if (panel.matches(".panel:not([tabindex])")) panel.tabIndex = -1;
    (sheet.open ? panel : summary).focus({ preventScroll: true });
  }

  function closeSheets(except) {
    const open = $$("details.sheet[open]").filter((sheet) => sheet !== except);
    open.forEach((sheet) => { sheet.open = false; });
    return open;
  }

  function press(element) {
    if (pace.rests(element)) return pace.tooFast();
    if (!drawn(element)) $("#others").showPopover();
    if (element.matches("summary")) return toggle(element);
    if (element.matches("textarea")) return element.focus();
    if (element.matches(".grade")) element.classList.add("pressed");
    element.click();
  }

  // Keys can be changed: what is pressed is looked up, and all else speaks of the keys as they were made.
  const changed = (() => { try { return JSON.parse(store.get("quorum.keymap")) || {}; } catch { return {}; } })();
  const keyFor = (made) => changed[made] || made;
  function madeFor(pressed) {
    const made = Object.keys(changed).find((key) => changed[key] === pressed);
    return made || (changed[pressed] && changed[pressed] !== pressed ? null : pressed);
  }
  function nameKeys(root) {
    $$("kbd", root).forEach((kbd) => {
      kbd.dataset.made ??= kbd.textContent;
      if (kbd.dataset.made.length === 1) kbd.textContent = keyFor(kbd.dataset.made);
    });
    announceKeys(root);
  }
  // A screen reader says the key as a key, not as a part of the button's name.
  function announceKeys(root) {
    $$("[data-key]", root).forEach((element) => {
      element.setAttribute("aria-keyshortcuts", keyFor(element.dataset.key));
      const named = element.textContent.trim() !== $("kbd", element)?.textContent.trim();
      if (named) $$("kbd", element).forEach((kbd) => kbd.setAttribute("aria-hidden", "true"));
    });
  }
  let changing = null;
  function changeKey(made) {
    changing = made;
    $("#keys-say").textContent = say.press.replace("K", keyFor(made));
  }
  function setKey(pressed) {
    const made = changing;
    changing = null;
    if (pressed !== "Escape" && pressed.length === 1 && pressed !== " ") {
      const known = new Set($$("[data-change-keys] kbd").map((kbd) => kbd.dataset.made));
      const other = madeFor(pressed);
      if (other !== made && known.has(other)) changed[other] = keyFor(made); // two keys trade places: none is lost
      changed[made] = pressed;
      store.set("quorum.keymap", JSON.stringify(changed));
    }
    $("#keys-say").textContent = "";
    nameKeys(document);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-change-keys] kbd");
    if (button && button.dataset.made.length === 1) changeKey(button.dataset.made);
    if (event.target.closest("#keys-reset")) {
      Object.keys(changed).forEach((key) => delete changed[key]);
      store.drop("quorum.keymap");
      nameKeys(document);
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (changing && !["Shift", "Control", "Alt", "Meta"].includes(event.key)) {
      event.preventDefault();
      return setKey(event.key);
    }
    if ((event.key === "Enter" || event.key === " ") && event.target.matches("kbd[role=button]")) {
      event.preventDefault();
      return event.target.click();
    }
    if (event.key === "Escape") {
      const closed = closeSheets();
      if (closed.length) $("summary", closed[0]).focus({ preventScroll: true });
      else if (typing(event.target)) event.target.blur();
      else leaveSentences();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && typing(event.target)) {
      const panel = event.target.closest(".panel") || document.createElement("i");
      const button = event.target.matches("[data-edit]") ? $("#answer [data-save]") : $("[data-enter]", panel);
      if (button) { event.preventDefault(); button.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target) || !keysOn()) return;
    const key = madeFor(event.key);
    if (key === null) return;
    const moves = { j: () => step(1), k: () => step(-1), d: toDebate };
    const element = moves[key] ? null : target(key);
    if (!moves[key] && !element) return;
    event.preventDefault();
    if (element) press(element);
    else moves[key]();
  });

  // Quoted sentences and the debate
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
    const goal = there ? $("#document-title") : debate;
    goal.tabIndex = -1;
    goal.scrollIntoView({ block: there ? "center" : "start", behavior: smooth() });
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
    if (event.target.closest("[data-jump]")) {
      event.preventDefault();
      toDebate();
    }
    if (!event.target.closest("details.sheet")) closeSheets();
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.sheet[open]")) closeSheets(event.target);
  }, true);

  // The document's characters: counted as the server counts them, without the labels of quotes
  const letters = (text) => [...text].length;
  function pieces() {
    const root = $(".document .text");
    if (!root) return [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(".tag") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    const found = [];
    for (let at = 0, node = walker.nextNode(); node; node = walker.nextNode()) {
      found.push({ node, at });
      at += letters(node.data);
    }
    return found;
  }
  // The place of (node, units) in characters; between nodes: the beginning of what follows.
  function placeOf(node, units) {
    let last = 0;
    for (const piece of pieces()) {
      if (piece.node === node) return piece.at + letters(node.data.slice(0, units));
      const probe = document.createRange();
      probe.setStart(node, units);
      if (probe.comparePoint(piece.node, 0) >= 0) return piece.at;
      last = piece.at + letters(piece.node.data);
    }
    return last;
  }
  function rangeOf(start, end) {
    const range = document.createRange();
    let begun = false;
    for (const { node, at } of pieces()) {
      const all = [...node.data];
      if (!begun && start < at + all.length) { range.setStart(node, all.slice(0, start - at).join("").length); begun = true; }
      if (begun && end <= at + all.length) { range.setEnd(node, all.slice(0, end - at).join("").length); return range; }
    }
    return null;
  }
  const documentText = () => pieces().map(({ node }) => node.data).join("");
  function paint(name, spans) {
    if (!window.CSS?.highlights || !window.Highlight) return;
    CSS.highlights.set(name, new Highlight(...spans.map(([start, end]) => rangeOf(start, end)).filter(Boolean)));
  }

  // Own evidence: what is selected, the quote that is lit, or a sentence that is walked to
  let own = [];
  let sentences = null;
  let sentence = -1;
  const spansField = () => $("#answer input[name=spans]");
  const written = (spans) => spans.map(([start, end]) => `${start}-${end}`).join(",");
  const read = (value) => (value ? value.split(",").map((part) => part.split("-").map(Number)) : []);

  function showOwn() {
    paint("own", own);
    const box = $(".document .own");
    if (!box) return;
    box.hidden = !own.length;
    const list = $("ol", box);
    const all = [...documentText()];
    list.replaceChildren(...own.map(([start, end], place) => {
      const item = document.createElement("li");
      const quote = document.createElement("q");
      quote.textContent = all.slice(start, end).join("");
      const remove = document.createElement("button");
      Object.assign(remove, { type: "button", className: "button small quiet", textContent: list.dataset.remove });
      remove.dataset.removes = place;
      item.append(quote, " ", remove);
      return item;
    }));
  }
  function keepOwn(spans) {
    own = spans;
    if (spansField()) spansField().value = written(own);
    showOwn();
    if ($("#desk[data-item]")) keepDraft($("#desk"));
  }
  // Marked again inside a mark: taken away. Overlapping marks become one.
  function mark(start, end) {
    const all = [...documentText()];
    while (start < end && !all[start].trim()) start += 1;
    while (start < end && !all[end - 1].trim()) end -= 1;
    if (start >= end) return;
    const inside = own.find(([from, to]) => from <= start && end <= to);
    if (inside) return keepOwn(own.filter((span) => span !== inside));
    const joined = own.filter(([from, to]) => from <= end && start <= to);
    const from = Math.min(start, ...joined.map((span) => span[0]));
    const to = Math.max(end, ...joined.map((span) => span[1]));
    keepOwn([...own.filter((span) => !joined.includes(span)), [from, to]].sort((a, b) => a[0] - b[0]).slice(0, 100));
  }
  function markEvidence() {
    const chosen = getSelection();
    const root = $(".document .text");
    if (chosen && !chosen.isCollapsed && root?.contains(chosen.anchorNode) && root.contains(chosen.focusNode)) {
      const range = chosen.getRangeAt(0);
      const [start, end] = [placeOf(range.startContainer, range.startOffset), placeOf(range.endContainer, range.endOffset)];
      chosen.removeAllRanges();
      return mark(start, end);
    }
    if (sentences && sentence >= 0) return mark(...sentences[sentence]);
    const lights = $$(".document mark.lit");
    if (lights.length) {
      const tags = pieces().filter(({ node }) => lights.some((light) => light.contains(node)));
      const last = tags[tags.length - 1];
      return mark(tags[0].at, last.at + letters(last.node.data));
    }
    walkSentences();
  }
  function walkSentences() {
    if (!window.Intl?.Segmenter) return;
    const text = documentText();
    const language = $(".document .text").lang || undefined;
    let at = 0;
    sentences = [...new Intl.Segmenter(language, { granularity: "sentence" }).segment(text)].map(({ segment }) => {
      const start = at;
      at += letters(segment);
      return [start, at];
    }).filter(([start, end]) => [...text].slice(start, end).join("").trim());
    sentence = -1;
    step(1);
  }
  function leaveSentences() {
    sentences = null;
    sentence = -1;
    paint("sentence", []);
  }
  function step(by) {
    if (!sentences) return light(by);
    if (!sentences.length) return leaveSentences();
    sentence = (sentence + by + sentences.length) % sentences.length;
    paint("sentence", [sentences[sentence]]);
    const range = rangeOf(...sentences[sentence]);
    const box = range?.getBoundingClientRect();
    if (box) scrollBy({ top: box.top - innerHeight / 2, behavior: smooth() });
    $("#announce").textContent = range?.toString() || "";
  }
  function toggleTerms(button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    const spans = on ? read($(".document .text").dataset.terms) : []; // found by the server: stems, no stop words
    paint("term", spans);
    if (on) $("#announce").textContent = String(spans.length);
  }
  document.addEventListener("click", (event) => {
    const tool = event.target.closest("[data-tool]");
    if (tool?.dataset.tool === "evidence") markEvidence();
    if (tool?.dataset.tool === "terms") toggleTerms(tool);
    const remove = event.target.closest("[data-removes]");
    if (remove) {
      keepOwn(own.filter((_, place) => place !== Number(remove.dataset.removes)));
      $("[data-tool=evidence]")?.focus();
    }
  });
  // A click on a button ends a selection in some browsers before it is read.
  document.addEventListener("mousedown", (event) => { if (event.target.closest("[data-tool]")) event.preventDefault(); });

  // Drafts: kept on the server; until it has them, and while it cannot be reached, on this device
  const draftKey = (desk) => `quorum.draft.${location.pathname}.${desk.dataset.member}.${desk.dataset.item}`;
  const ofAnswer = (field) => field.matches("textarea, input[name=spans]") && field.form?.id === "answer";
  const fields = (desk) => $$("textarea, input[name=spans]", desk).filter(ofAnswer);
  const typedIn = (desk) => Object.fromEntries(fields(desk).map((field) => [field.name, field.value]).filter(([, value]) => value));
  let sending = 0;

  function keepDraft(desk) {
    store.set(draftKey(desk), JSON.stringify({ at: Date.now(), typed: typedIn(desk) }));
    sayWritten(desk);
    clearTimeout(sending);
    sending = setTimeout(sendDraft, DRAFT_AFTER, desk);
  }

  async function sendDraft(desk) {
    clearTimeout(sending);
    sending = 0;
    const form = $("#answer", desk);
    const key = draftKey(desk);
    const kept = store.get(key);
    if (!form || !desk.dataset.draftUrl) return;
    const body = new URLSearchParams({ ...typedIn(desk), item: $("[name=item]", form).value, token: $("[name=token]", form).value });
    const headers = { "X-CSRFToken": $("input[name=csrfmiddlewaretoken]", form).value };
    try {
      const answer = await fetch(desk.dataset.draftUrl, { method: "POST", body, headers, keepalive: true });
      if (answer.ok && (await answer.json()).kept && store.get(key) === kept) store.drop(key); // the server has it
    } catch { /* no connection: it stays here */ }
  }
  document.addEventListener("visibilitychange", () => {
    const desk = $("#desk[data-item]");
    if (document.hidden && sending && desk) sendDraft(desk);
  });

  function bringDraft(desk) {
    let draft = null;
    try { draft = JSON.parse(store.get(draftKey(desk))); } catch { /* not ours */ }
    const note = $("#note", desk);
    if (note && desk.dataset.note) note.value = desk.dataset.note;
    // What is still on this device is newer than what the server had.
    if (draft) for (const field of fields(desk)) field.value = draft.typed[field.name] ?? (field.matches("[data-edit]") ? field.value : "");
    own = read(spansField()?.value);
    leaveSentences();
    paint("term", []);
    showOwn();
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

  // The lease, mentioned in its last minute only
  function showLease() {
    const notice = $("#lease");
    const left = Math.round((leaseEnds - performance.now()) / 1000);
    if (!notice || left > 60) return;
    notice.hidden = false;
    const words = left < 1 ? say.over : left === 1 ? say.second : say.seconds.replace("N", left);
    if ($("#lease-words").textContent !== words) $("#lease-words").textContent = words;
  }
  setInterval(showLease, 1000);

  // On a phone the query folds to its first line while the text is read; a tap opens it, scrolling on closes it
  addEventListener("scroll", () => {
    const question = $(".question");
    question?.classList.toggle("folded", scrollY > 60);
    question?.classList.remove("open");
  }, { passive: true });
  document.addEventListener("click", (event) => event.target.closest?.(".question.folded")?.classList.toggle("open"));

  // A new pair on the desk
  function arrive(desk, swapped) {
    beginTime();
    lit = -1;
    nameKeys(document);
    $$("[data-needs-script]", desk).forEach((element) => { element.hidden = false; });
    const seconds = Number(desk.dataset.seconds);
    leaseEnds = desk.dataset.seconds ? performance.now() + seconds * 1000 : Infinity;
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

  // Time on the pair goes on over a reload.
  const timeKey = () => `quorum.time.${$("#answer input[name=token]")?.value ?? `${$("#desk")?.dataset.member}.${$("#desk")?.dataset.item}`}`;
  addEventListener("pagehide", () => {
    const { milliseconds, idle } = pace.measure();
    try { if ($("#answer")) sessionStorage.setItem(timeKey(), JSON.stringify([milliseconds, idle])); } catch { /* forbidden */ }
  });
  function beginTime() {
    let before = [0, 0];
    try { before = JSON.parse(sessionStorage.getItem(timeKey())) || before; } catch { /* forbidden or not ours */ }
    pace.begin(...before);
  }
  document.addEventListener("submit", stampTime, true);
  document.addEventListener("htmx:beforeRequest", () => clearTimeout(sending));
  document.addEventListener("htmx:configRequest", (event) => {
    if (!event.detail.elt.closest("#answer")) return;
    Object.assign(event.detail.parameters, pace.measure());
  });
  function stampTime(event) {
    const form = event.target;
    const field = $("input[name=milliseconds]", form);
    if (!field) return;
    const { milliseconds, idle } = pace.measure();
    field.value = milliseconds;
    const idleField = $("input[name=idle]", form);
    if (idleField) idleField.value = idle;
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const desk = $("#desk[data-item]");
    if (event.detail.successful) {
      trouble("");
      const sent = event.detail.requestConfig?.parameters?.item;
      if (desk && sent && event.detail.xhr.status === 200) store.drop(`quorum.draft.${location.pathname}.${desk.dataset.member}.${sent}`);
    }
  });
  // A lost connection: the decision is kept and sent again; its token makes it count once
  let unsent = null;
  let again = 0;
  function keepUnsent(event, words) {
    const { path, parameters, elt } = event.detail.requestConfig || {};
    if (elt?.closest("#answer")) {
      unsent = { path, values: Object.fromEntries(parameters instanceof FormData ? parameters.entries() : Object.entries(parameters)) };
      clearTimeout(again);
      again = setTimeout(sendAgain, AGAIN_AFTER);
    }
    trouble(words);
  }
  function sendAgain() {
    if (!unsent || !$("#desk")) return;
    const { path, values } = unsent;
    htmx.ajax("POST", path, { source: "#answer", target: "#desk", swap: "outerHTML", values });
  }
  addEventListener("online", sendAgain);
  document.addEventListener("htmx:sendError", (event) => keepUnsent(event, say.offline));
  document.addEventListener("htmx:timeout", (event) => keepUnsent(event, say.silent));
  document.addEventListener("htmx:beforeSwap", () => { unsent = null; clearTimeout(again); });
  const isAway = (event) => [502, 503, 504].includes(event.detail.xhr.status); // nothing was saved: it is sent again
  document.addEventListener("htmx:responseError", (event) => (isAway(event) ? keepUnsent(event, say.silent) : trouble(say.failed)));
  document.addEventListener("htmx:afterSwap", () => {
    const desk = $("#desk");
    if (desk) arrive(desk, true);
  });

  // Start
  const choice = $("#keys-on");
  if (choice) {
    choice.checked = keysOn();
    choice.addEventListener("change", () => store.set("quorum.keys", choice.checked ? "on" : "off"));
    $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
    $$("[data-change-keys] kbd").filter((kbd) => kbd.textContent.length === 1).forEach((kbd) => { kbd.tabIndex = 0; kbd.setAttribute("role", "button"); });
  }
  nameKeys(document);
  if (window.htmx) window.htmx.config.timeout = 20000;
  forgetOldDrafts();
  const desk = $("#desk");
  if (desk) arrive(desk, false);
  // Straight from signing in: the page asks for the first pair. A reload asks for nothing.
  const starts = $("form[data-starts] button");
  if (starts) {
    history.replaceState(null, "", location.pathname);
    addEventListener("DOMContentLoaded", () => starts.click());
  }
})();

// The workshop with scripts: single keys, weights as they would be, pieces of a text. Every form works without.
"use strict";

(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* forbidden */ } },
  };
  const typing = (target) => target.matches("textarea, select, input:not([type=checkbox], [type=radio])") || target.isContentEditable;
  // What is folded away has rectangles, and yet nobody sees it.
  const seen = (element) => (element.checkVisibility ? element.checkVisibility() : element.getClientRects().length > 0);

  // --- Keys: those of a card belong to the card that has the focus, else to the first one -------------------------
  const cards = () => $$("[data-card]");
  const card = () => document.activeElement?.closest?.("[data-card]") || cards()[0];

  function move(step) {
    const all = cards();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement?.closest?.("[data-card]"));
    all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  }

  function press(element) {
    const details = element.matches("summary") ? element.parentElement : null;
    if (!details) {
      element.click();
      return;
    }
    details.open = !details.open;
    const fields = details.open ? $$("input:not([type=hidden]), textarea, select", details).filter(seen) : [];
    const field = fields[0]?.type === "radio" ? fields.find((one) => one.name === fields[0].name && one.checked) || fields[0] : fields[0];
    (field || element).focus();
    (field || element).scrollIntoView({ block: "nearest" });
  }

  const keys = $("[data-change-keys]") && keymap("quorum.keymap.aspects");

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || keys?.takes(event)) return;
    if (event.key === "Escape" && typing(event.target)) {
      const around = event.target.closest("details, [data-card], section");
      event.target.blur();
      ($("summary", around) || around)?.focus?.();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typing(event.target)) return;
    if (store.get("quorum.keys") === "off") return;
    const onControl = event.target.matches("a, button, summary, input[type=radio]");
    if (event.key === "Enter" && onControl) return; // it has a meaning of its own there
    const made = keys ? keys.madeFor(event.key) : event.key;
    if (made === null) return;
    if (made === "j" || made === "k") {
      event.preventDefault();
      move(made === "j" ? 1 : -1);
      return;
    }
    const key = CSS.escape(made);
    const own = card() && $$(`[data-card-key="${key}"]`, card()).find(seen);
    const element = own || $$(`[data-key="${key}"]`).find(seen);
    if (!element) return;
    event.preventDefault();
    if (own && !card().contains(document.activeElement)) card().focus();
    press(element);
  });

  const on = $("#keys-on");
  if (on) {
    on.checked = store.get("quorum.keys") !== "off";
    on.addEventListener("change", () => store.set("quorum.keys", on.checked ? "on" : "off"));
  }

  // --- Weights as they would be -----------------------------------------------------------------------------------
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-weigh]");
    if (!form) return;
    const ones = $$(".weigh-one", form);
    const given = ones.map((one) => Number($("input:checked", one)?.value || 0));
    const total = given.reduce((sum, value) => sum + value, 0) || 1;
    ones.forEach((one, at) => { $("[data-weight]", one).textContent = (given[at] / total).toFixed(2); });
  });

  // --- What an act said is gone when the next one worked ------------------------------------------------------------
  document.addEventListener("htmx:afterSwap", (event) => {
    keys?.write();
    const problem = $("#problem");
    if (event.detail.target.id === "problem") $("[tabindex]", problem)?.focus();
    else if (event.detail.target.id === "desk" || event.detail.elt.id === "desk") problem.replaceChildren();
  });

  // --- A text piece by piece: a digit puts the piece under an aspect, and the next piece is up --------------------
  const spread = $("#spread");
  if (spread) {
    const selects = $$("select[name=s]", spread);
    const show = () => {
      let mark = "";
      for (const select of selects) {
        if (select.value !== "^") mark = select.value;
        select.closest(".piece").classList.toggle("trimmed", mark === "");
      }
    };
    spread.addEventListener("change", show);
    spread.addEventListener("keydown", (event) => {
      const at = selects.indexOf(event.target);
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey || !/^[0-9^]$/.test(event.key)) return;
      const options = [...event.target.options].filter((option) => option.value !== "^");
      const chosen = event.key === "^" ? [...event.target.options].find((option) => option.value === "^") : options[Number(event.key)];
      if (!chosen) return;
      event.preventDefault();
      event.target.value = chosen.value;
      show();
      selects[at + 1]?.focus();
    });
    show();
  }
})();

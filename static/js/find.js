// Ctrl-K, or / where no field has the focus and the page has no / of its own: one search, by keys alone.
"use strict";

(() => {
  const dialog = document.getElementById("find");
  const field = dialog.querySelector("input");
  const list = document.getElementById("find-list");
  const options = () => [...list.querySelectorAll("[role=option]")];
  const current = () => list.querySelector("[aria-selected=true]");

  function select(option) {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    field.select();
    field.dispatchEvent(new Event("open"));
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || event.shiftKey && event.key !== "/") return;
    const typing = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    const ours = event.ctrlKey || event.metaKey
      ? event.key.toLowerCase() === "k"
      : event.key === "/" && !typing && !document.querySelector("[aria-keyshortcuts='/']") && !document.querySelector("dialog[open]");
    if (!ours) return;
    event.preventDefault();
    open();
  });
  document.querySelector(".find-button").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  field.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.isComposing) return;
    if (event.key in steps) {
      const all = options();
      if (all.length) select(all[(all.indexOf(current()) + steps[event.key] + all.length) % all.length]);
    } else if (event.key === "Enter") current()?.click();
    else if (event.key === "Escape") dialog.close(); // a search field would only be emptied
    else return;
    event.preventDefault();
  });
  list.addEventListener("htmx:afterSwap", () => {
    const [first] = options();
    field.setAttribute("aria-expanded", String(Boolean(first)));
    select(first);
  });
  // A result may be a place on this page.
  list.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
})();

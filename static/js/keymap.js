// Keys that somebody changed on this device: what is pressed is looked up, and all else speaks of the keys as they were
// made. The desk has the same inside judging.js, because its page may load six files at most.
"use strict";

// `name`: where the changes are kept. Keys are changed by choosing one in [data-change-keys]; #keys-say speaks.
window.keymap = (name) => {
  const store = {
    get() { try { return JSON.parse(localStorage.getItem(name)) || {}; } catch { return {}; } },
    set(value) { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* forbidden or full */ } },
    drop() { try { localStorage.removeItem(name); } catch { /* forbidden */ } },
  };
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  const say = (words) => { document.querySelector("#keys-say").textContent = words; };
  const changed = store.get();
  let changing = null;
  const keyFor = (made) => changed[made] || made;

  // The key that this one stands for; null: its own meaning went to another key.
  function madeFor(pressed) {
    const made = Object.keys(changed).find((key) => changed[key] === pressed);
    return made || (changed[pressed] && changed[pressed] !== pressed ? null : pressed);
  }
  function write() {
    $$("kbd").forEach((kbd) => {
      kbd.dataset.made ??= kbd.textContent;
      if (kbd.dataset.made.length === 1) kbd.textContent = keyFor(kbd.dataset.made);
    });
    // A screen reader says the key as a key, not as a part of the button's name.
    $$("[data-key]").forEach((element) => {
      element.setAttribute("aria-keyshortcuts", keyFor(element.dataset.key));
      if (element.textContent.trim() === element.querySelector("kbd")?.textContent.trim()) return;
      element.querySelectorAll("kbd").forEach((kbd) => kbd.setAttribute("aria-hidden", "true"));
    });
  }
  function set(made, pressed) {
    const known = new Set($$("[data-change-keys] kbd").map((kbd) => kbd.dataset.made));
    const other = madeFor(pressed);
    if (other !== made && known.has(other)) changed[other] = keyFor(made); // two keys trade places: none is lost
    changed[made] = pressed;
    store.set(changed);
  }
  // Whether the key was the new one of a change that was begun.
  function takes(event) {
    if (!changing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return false;
    event.preventDefault();
    if (event.key.length === 1 && event.key !== " ") set(changing, event.key);
    changing = null;
    say("");
    write();
    return true;
  }

  $$("[data-change-keys] kbd").forEach((kbd) => {
    if (kbd.textContent.length > 1 || kbd.closest("[data-fixed]")) return;
    kbd.tabIndex = 0;
    kbd.setAttribute("role", "button");
  });
  document.addEventListener("click", (event) => {
    const kbd = event.target.closest("[data-change-keys] kbd[role=button]");
    if (kbd) {
      changing = kbd.dataset.made;
      say(document.querySelector("#keys-say").dataset.press.replace("K", keyFor(changing)));
    }
    if (event.target.closest("#keys-reset")) {
      Object.keys(changed).forEach((key) => delete changed[key]);
      store.drop();
      write();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key) || changing || !event.target.matches("kbd[role=button]")) return;
    event.preventDefault();
    event.target.click();
  });
  $$("[data-needs-script]").forEach((element) => { element.hidden = false; });
  write();
  return { madeFor, takes, write };
};

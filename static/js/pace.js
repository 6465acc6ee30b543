// The pace of judging, of pairs, of whole queries and of comparisons alike: the time on what is shown (hidden, or
// untouched for a minute, it counts as idle), and its first moment, in which a press was meant for what was there before.
"use strict";

globalThis.pace = (() => {
  const IDLE_AFTER = 60 * 1000;
  const FAST_FOR = 1500;
  const REST = 400; // milliseconds; the page may say another number
  let arrivedAt = performance.now();
  let beganAt = arrivedAt;
  let touchedAt = arrivedAt;
  let idle = 0;
  let fading = 0;

  // Something else is shown; after a reload the same, with the milliseconds from before.
  function begin(shownBefore = 0, idleBefore = 0) {
    arrivedAt = touchedAt = performance.now();
    beganAt = arrivedAt - shownBefore;
    idle = idleBefore;
  }

  function touch() {
    const now = performance.now();
    if (now - touchedAt > IDLE_AFTER) idle += now - touchedAt;
    touchedAt = now;
  }

  // Milliseconds shown and idle, until now.
  function measure() {
    touch();
    return { milliseconds: Math.round(performance.now() - beganAt), idle: Math.round(idle) };
  }

  const isFresh = () => performance.now() - arrivedAt < Number(document.querySelector("[data-rest]")?.dataset.rest ?? REST);
  const rests = (element) => element.closest("[data-rests]") && isFresh();

  // It says so for an instant, beside the buttons and to screen readers.
  function tooFast() {
    const notice = document.querySelector("#too-fast");
    if (!notice) return;
    notice.textContent = document.querySelector("#trouble").dataset.fast;
    clearTimeout(fading);
    fading = setTimeout(() => { notice.textContent = ""; }, FAST_FOR);
  }

  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "touchstart"]) {
    document.addEventListener(kind, touch, { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return touch();
    const now = performance.now();
    idle += now - touchedAt;
    touchedAt = now;
  });
  document.addEventListener("click", (event) => {
    if (rests(event.target)) { event.preventDefault(); event.stopPropagation(); tooFast(); }
  }, true);

  return { begin, measure, isFresh, rests, tooFast };
})();

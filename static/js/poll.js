// Parts of a page that ask for news (data-poll) rest while nobody looks at them.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.closest("[data-poll]")) event.preventDefault();
});

// News replace what is shown; what somebody opened there stays open.
let opened = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target?.closest("[data-poll]");
  opened = part ? [...part.querySelectorAll("details[open][id]")].map((found) => found.id) : [];
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});

// Focus is never lost: when what had it is replaced, it goes to the same thing again, else to what stands in its place.
const CAN_FOCUS = "a[href], button:not([disabled]), input:not([type=hidden], [disabled]), select, textarea, summary, [tabindex='0']";
const shown = (found) => (found.checkVisibility ? found.checkVisibility() : found.getClientRects().length); // what is folded has rectangles
const stops = (part) => [...part.querySelectorAll(CAN_FOCUS)].filter(shown);
const same = (a) => (b) => b.id === a.id && b.tagName === a.tagName && b.name === a.name && b.getAttribute("href") === a.href && b.textContent === a.text;
let left = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  const at = document.activeElement;
  if (!part?.contains(at) || at === document.body) return;
  left = { part, partId: part.id, place: stops(part).indexOf(at), at: { id: at.id, tagName: at.tagName, name: at.name, href: at.getAttribute("href"), text: at.textContent } };
});
document.addEventListener("htmx:afterSettle", () => {
  const was = left;
  left = null;
  if (!was || (document.activeElement && document.activeElement !== document.body)) return;
  const part = was.part.isConnected ? was.part : document.getElementById(was.partId) || document.getElementById("main");
  const found = stops(part);
  const next = found.find(same(was.at)) || found[Math.min(was.place, found.length - 1)] || part;
  if (next === part && !part.hasAttribute("tabindex")) part.tabIndex = -1;
  next.focus({ preventScroll: true });
});

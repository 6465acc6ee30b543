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

// Parts of a page that ask for news (data-poll) rest while nobody looks at them.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.closest("[data-poll]")) event.preventDefault();
});

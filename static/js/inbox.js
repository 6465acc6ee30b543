// The inbox of a collection (templates/inbox): the count in the tab's title, and notices of what ended meanwhile.
const AT = `inbox ${location.pathname.split("/c/")[1]?.split("/")[0]}`;
const STAYS_MS = 10000;

document.addEventListener("htmx:configRequest", (event) => {
  // What ended since the last answer that any page of this tab got.
  if (event.target.id === "inbox") event.detail.parameters.since = sessionStorage.getItem(AT) || "";
});

// After the session has ended, a page that somebody fills in is not left: the next thing that they do says so.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.target.id !== "inbox" || event.detail.xhr.status !== 401) return;
  event.preventDefault();
  event.target.remove();
});

document.addEventListener("htmx:afterSettle", (event) => {
  const inbox = document.getElementById("inbox");
  if (!inbox?.dataset.at || event.target.id !== "inbox") return;
  sessionStorage.setItem(AT, inbox.dataset.at);
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = Number(inbox.dataset.count) ? `(${inbox.dataset.count}) ${title}` : title;
  for (const toast of document.querySelectorAll(".toast:not([data-shown])")) {
    toast.dataset.shown = "";
    leave(toast);
  }
});

// A notice goes by itself, but not while somebody is at it, nor while nobody can see it.
function leave(toast) {
  setTimeout(() => (document.hidden || toast.matches(":hover, :focus-within") ? leave(toast) : toast.remove()), STAYS_MS);
}

// The focus returns to where it was before.
let before = null;
document.addEventListener("focusin", (event) => {
  if (!event.target.closest(".toast")) before = event.target;
});

function dismiss(toast) {
  const next = toast.nextElementSibling || toast.previousElementSibling;
  toast.remove();
  (next?.querySelector("[data-dismiss]") || (before?.isConnected ? before : document.getElementById("main"))).focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-dismiss]")) dismiss(event.target.closest(".toast"));
});
document.addEventListener("keydown", (event) => {
  const toast = event.key === "Escape" && event.target.closest(".toast");
  if (toast) dismiss(toast);
});

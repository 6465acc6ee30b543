// data-at: row and columns (none: all) of the table below.
const on = (kind, act) => document.addEventListener(kind, act);
const within = (event, what) => event.target.closest?.(what);
const middle = (one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
};

function read(mark) {
  const table = mark.closest(".chart").querySelector("table");
  const [row, ...columns] = mark.dataset.at.split(" ");
  const { cells } = table.rows[+row + 1];
  const told = columns.length ? columns : Object.keys(cells);
  const text = (cell) => cell.textContent.trim();
  const known = told.filter((n) => n > 0 && !["", "–"].includes(text(cells[n])));
  const lines = known.map((n) => `${text(table.rows[0].cells[n])}: ${text(cells[n])}`);
  return { name: text(cells[0]), lines, link: [...told, 0].map((n) => cells[n].querySelector("a")).find(Boolean) };
}

function clear(chart) {
  chart.querySelector(".chart-tip").replaceChildren();
  for (const one of chart.querySelectorAll(".at, .lit")) one.classList.remove("at", "lit");
}

// Other series grow faint.
function light(part) {
  const series = part.closest("[data-series]")?.dataset.series;
  if (!series) return;
  for (const one of part.closest("svg").querySelectorAll(`[data-series="${series}"]`)) one.classList.add("lit");
}

function show(mark, pointer) {
  if (!mark || mark.matches(".at")) return;
  const chart = mark.closest(".chart");
  clear(chart);
  mark.classList.add("at");
  light(mark);
  const { name, lines, link } = read(mark);
  const make = (kind, textContent) => Object.assign(document.createElement(kind), { textContent, href: link?.href });
  const tip = chart.querySelector(".chart-tip");
  tip.append(make(link ? "a" : "b", name), ...lines.map((line) => make("span", line)));
  const frame = chart.getBoundingClientRect();
  const box = mark.getBoundingClientRect();
  const x = (pointer?.clientX ?? middle(mark)[0]) - frame.x - tip.offsetWidth / 2;
  const above = (pointer?.clientY ?? box.top) - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(0, Math.min(x, frame.width - tip.offsetWidth))}px`;
  tip.style.top = `${(above > 0 ? above : (pointer?.clientY ?? box.bottom) + 16) - frame.y}px`;
}

// 24 px beside a small point will do.
function near(event) {
  const dots = within(event, ".chart-scroll")?.querySelectorAll("[data-at] circle") ?? [];
  const far = (dot) => Math.hypot(middle(dot)[0] - event.clientX, middle(dot)[1] - event.clientY);
  const [least] = [...dots].map((dot) => [far(dot), dot]).sort((a, b) => a[0] - b[0]);
  return within(event, "[data-at]") ?? (least?.[0] < 24 ? least[1].closest("[data-at]") : null);
}

on("pointermove", (event) => {
  if (within(event, ".chart-tip")) return;
  const mark = near(event);
  if (mark) return show(mark, event);
  document.querySelectorAll(".chart").forEach(clear);
  light(event.target);
});
on("click", (event) => {
  const mark = near(event);
  if (event.pointerType !== "mouse") show(mark, event);
  else if (mark) read(mark).link?.click();
});
on("focusin", ({ target }) => {
  if (target.matches(".chart-scroll:focus-visible")) show(target.querySelector("[data-at]"));
});
on("focusout", (event) => {
  const chart = within(event, ".chart");
  if (chart && !chart.contains(event.relatedTarget)) clear(chart);
});
on("keydown", (event) => {
  const chart = within(event, ".chart");
  const { key, target } = event;
  if (chart && key === "Escape") {
    chart.querySelector(".chart-scroll").focus();
    clear(chart);
  }
  if (!target.matches(".chart-scroll")) return;
  const all = [...target.querySelectorAll("[data-at]")];
  const n = all.findIndex((mark) => mark.matches(".at"));
  if (key === "Enter" && all[n]) read(all[n]).link?.click();
  const next = { ArrowRight: n + 1, ArrowDown: n + 1, ArrowLeft: n - 1, ArrowUp: n - 1 }[key];
  if (next === undefined || event.altKey) return;
  event.preventDefault();
  all[next]?.scrollIntoView({ block: "nearest" });
  show(all[next]);
});

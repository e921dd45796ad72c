// The flame graph of a page: click zooms, Escape goes back, the box searches.
// Names are data of others: they reach the page as textContent and title only.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const graph = document.getElementById("graph"), said = document.getElementById("said");
const search = document.getElementById("search"), reset = document.getElementById("reset");
const whole = data.value[0] || 1, deepest = Math.max(...data.depth);
let zoomed = 0, wanted = null;
const name = i => data.names[data.name[i]], module = i => data.names[data.module[i]];
const percent = v => (100 * v / whole).toFixed(2) + " %";
function inside(i, j) {
  return data.start[j] >= data.start[i]
    && data.start[j] + data.value[j] <= data.start[i] + data.value[i];
}
function describe(i) {
  const where = module(i) ? " \u00b7 " + module(i) : "";
  const samples = data.value[i].toLocaleString("en") + " samples, " + percent(data.value[i]);
  return name(i) + where + " \u00b7 " + samples;
}
function draw() {
  const width = graph.clientWidth, from = data.start[zoomed], span = data.value[zoomed] || 1;
  const shown = document.createDocumentFragment();
  for (let i = 0; i < data.depth.length; i++) {
    const caller = data.depth[i] <= data.depth[zoomed] && inside(i, zoomed);
    if (!caller && !(data.depth[i] > data.depth[zoomed] && inside(zoomed, i))) continue;
    const left = caller ? 0 : (data.start[i] - from) / span * width;
    const wide = caller ? width : data.value[i] / span * width;
    if (wide < 0.4) continue;
    const row = data.inverted ? data.depth[i] : deepest - data.depth[i];
    const box = document.createElement("div");
    box.style.left = left + "px";
    box.style.top = row * 18 + "px";
    box.style.width = Math.max(wide, 1) + "px";
    box.style.background = data.colours[data.colour[i]];
    if (wide < 14) box.style.padding = 0; else box.textContent = name(i);
    if (wanted && wanted.test(name(i))) box.className = "found";
    box.title = describe(i); box.dataset.at = i; box.tabIndex = wide > 8 ? 0 : -1;
    shown.append(box);
  }
  graph.replaceChildren(shown);
  graph.style.height = (deepest + 1) * 18 + "px";
  graph.classList.toggle("searched", wanted !== null);
  said.textContent = (wanted ? matched() + " \u00b7 " : "") + describe(zoomed);
}
function matched() {
  let sum = 0, end = -1;
  const order = data.depth.map((_, i) => i).filter(i => i > 0 && wanted.test(name(i)));
  order.sort((a, b) => data.start[a] - data.start[b] || data.depth[a] - data.depth[b]);
  for (const i of order) {
    if (data.start[i] < end) continue;
    sum += data.value[i]; end = data.start[i] + data.value[i];
  }
  return "found in " + percent(sum);
}
const at = event => event.target.dataset.at === undefined ? -1 : Number(event.target.dataset.at);
function zoom(i) {
  if (i < 0) return;
  zoomed = i;
  draw();
}
graph.addEventListener("click", event => zoom(at(event)));
graph.addEventListener("keydown", event => { if (event.key === "Enter") zoom(at(event)); });
graph.addEventListener("mouseover", event => {
  if (at(event) >= 0) said.textContent = describe(at(event));
});
reset.addEventListener("click", () => zoom(0));
document.addEventListener("keydown", event => { if (event.key === "Escape") zoom(0); });
document.querySelector("form").addEventListener("submit", event => event.preventDefault());
search.addEventListener("input", () => {
  wanted = null; search.setCustomValidity("");
  if (search.value) try { wanted = new RegExp(search.value, "i"); }
    catch (error) { search.setCustomValidity(String(error.message)); }
  draw();
});
addEventListener("resize", draw);
draw();
if (!data.inverted) scrollTo(0, document.body.scrollHeight);

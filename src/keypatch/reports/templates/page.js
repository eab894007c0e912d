"use strict";

// ---- a box in the legend shows or hides everything of a descriptor
const legend = document.querySelector(".legend");
function show(box) {
  for (const part of document.querySelectorAll(`[data-of="${Number(box.value)}"]`)) part.classList.toggle("off", !box.checked);
}
legend.addEventListener("change", event => show(event.target));
for (const box of legend.querySelectorAll("input")) show(box);  // a browser may remember boxes from the visit before

// ---- the head of a column sorts by it; what has no value stays last
function sortBy(head) {
  const table = head.closest("table"), column = head.cellIndex, body = table.tBodies[0];
  const up = head.getAttribute("aria-sort") !== "ascending", sign = up ? 1 : -1;
  const key = row => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const rows = [...body.rows].map(row => ({ row, text: key(row), value: parseFloat(key(row)) }));
  const numeric = rows.every(({ text, value }) => text === "" || !Number.isNaN(value));
  rows.sort((a, b) => {
    if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "");
    return sign * (numeric ? a.value - b.value : a.text.localeCompare(b.text, "en", { numeric: true }));
  });
  for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...rows.map(({ row }) => row));
}
for (const button of document.querySelectorAll(".sortable th button"))
  button.addEventListener("click", () => sortBy(button.closest("th")));

// ---- pointing at curves: what every line shows at that place
const SVG = "http://www.w3.org/2000/svg";
function made(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}
function valueAt(axis, place) {
  const part = (place - axis.start) / (axis.end - axis.start);
  return axis.log ? axis.low * (axis.high / axis.low) ** part : axis.low + part * (axis.high - axis.low);
}
function written(axis, value) {
  const shown = axis.percent ? 100 * value : value, range = (axis.percent ? 100 : 1) * (axis.high - axis.low);
  const digits = Math.min(4, Math.max(0, 3 - Math.ceil(Math.log10(range))));
  const text = axis.log ? String(Number(shown.toPrecision(2))) : shown.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return axis.percent ? `${text} %` : text;
}
function heightAt(line, x) {  // of the line at this place, null beside its ends
  const points = line.points;
  for (let i = 1; i < points.numberOfItems; i++) {
    const a = points.getItem(i - 1), b = points.getItem(i);
    if (a.x <= x && x <= b.x) return b.x > a.x ? a.y + (x - a.x) / (b.x - a.x) * (b.y - a.y) : b.y;
  }
  return null;
}
class Reader {
  constructor(picture) {
    this.picture = picture;
    this.axes = JSON.parse(picture.dataset.axes);
    this.marks = made("g", {}, picture);
    this.reading = document.createElement("div");
    this.reading.className = "reading";
    this.reading.setAttribute("role", "status");
    this.reading.hidden = true;
    picture.after(this.reading);
    this.x = (this.axes.x.start + this.axes.x.end) / 2;
    const point = event => this.read(this.placeOf(event));
    picture.addEventListener("pointermove", point);
    picture.addEventListener("pointerdown", point);
    picture.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") this.clear(); });
    picture.addEventListener("blur", () => this.clear());
    picture.addEventListener("keydown", event => this.key(event));
  }
  placeOf(event) {
    const box = this.picture.getBoundingClientRect(), view = this.picture.viewBox.baseVal;
    return (event.clientX - box.left) / box.width * view.width;
  }
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.clear();
    if (!step) return;
    event.preventDefault();
    this.read(this.x + step * (this.axes.x.end - this.axes.x.start) / 60);
  }
  read(x) {
    const { start, end } = this.axes.x;
    this.x = Math.min(end, Math.max(start, x));
    const lines = [...this.picture.querySelectorAll("polyline:not(.off)")]
      .map(line => ({ line, y: heightAt(line, this.x) })).filter(({ y }) => y !== null).sort((a, b) => a.y - b.y);
    if (!lines.length) return this.clear();
    this.marks.replaceChildren();
    made("line", { class: "guide", x1: this.x, x2: this.x, y1: this.axes.y.start, y2: this.axes.y.end }, this.marks);
    for (const { line, y } of lines)
      made("circle", { class: `spot ${line.classList[1]}`, cx: this.x, cy: y, r: 3.5 }, this.marks);
    this.say(lines);
  }
  say(lines) {
    const head = document.createElement("p");
    head.textContent = `${this.axes.x.label} ${written(this.axes.x, valueAt(this.axes.x, this.x))}`;
    const rows = lines.map(({ line, y }) => {
      const row = document.createElement("div"), name = document.createElement("span"), value = document.createElement("b");
      const sign = made("svg", { class: "swatch", viewBox: "0 0 28 10" }, row);
      made("line", { class: line.getAttribute("class"), x1: 1, y1: 5, x2: 27, y2: 5 }, sign);
      name.textContent = line.dataset.name;
      value.textContent = written(this.axes.y, valueAt(this.axes.y, y));
      row.append(name, value);
      return row;
    });
    this.reading.replaceChildren(head, ...rows);
    this.reading.hidden = false;
    this.place();
  }
  place() {  // beside the guide, on the side with more room, never outside of the figure
    const view = this.picture.viewBox.baseVal, scale = this.picture.clientWidth / view.width, at = this.x * scale;
    const width = this.reading.offsetWidth, room = this.picture.parentNode.clientWidth;
    const left = at + 14 + width <= room ? at + 14 : at - 14 - width;
    this.reading.style.left = `${Math.max(0, Math.min(left, room - width))}px`;
    const top = this.picture.getBoundingClientRect().top - this.picture.parentNode.getBoundingClientRect().top;
    this.reading.style.top = `${top + 8}px`;
  }
  clear() {
    this.marks.replaceChildren();
    this.reading.hidden = true;
  }
}
const readers = [...document.querySelectorAll("svg.curves")].map(picture => new Reader(picture));
addEventListener("pointerdown", event => {
  for (const reader of readers) if (!reader.picture.contains(event.target)) reader.clear();
});

// ---- paper shows what is folded away
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => { for (const part of folded) part.open = false; });

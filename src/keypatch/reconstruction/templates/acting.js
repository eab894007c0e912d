// ---- the photo of a camera, shown beside it
function choose(camera) {
  if (camera === chosen) return;
  if (chosen >= 0) rows[chosen].classList.remove("chosen");
  if (camera >= 0) rows[camera].classList.add("chosen");
  chosen = camera; wanted = true;
  canvas.classList.toggle("pointing", camera >= 0);
}
function placeCard(m) {
  const card = element("card"), shown = chosen >= 0 ? chosen : inside;
  card.hidden = shown < 0;
  if (shown < 0) return;
  const [image, name] = card.children, source = shown !== inside && picture(shown), sights = model.sights[shown];  // who looks through a photo sees it large
  name.textContent = model.names[shown] + (sights === null ? "" : (shown === inside ? ", " : "\n") + sights.toLocaleString("en") + (sights === 1 ? " point" : " points"));
  image.hidden = !source;
  if (source && image.getAttribute("src") !== source) image.src = source;
  const room = [canvas.clientWidth - card.offsetWidth - 16, canvas.clientHeight - card.offsetHeight - 16];
  let [left, top] = room;  // in the corner where its camera is not in sight
  const face = cornersOnScreen(shown, m), [x, y] = [0, 1].map(axis => face.map(place => place[axis]));
  if (shown !== inside && Math.max(...x) > 0 && Math.min(...x) < canvas.clientWidth && Math.max(...y) > 0 && Math.min(...y) < canvas.clientHeight) {
    left = Math.max(...x) + 14 > room[0] ? Math.min(...x) - 14 - card.offsetWidth : Math.max(...x) + 14;
    top = (Math.min(...y) + Math.max(...y) - card.offsetHeight) / 2;
  }
  card.style.left = Math.max(16, Math.min(left, room[0])) + "px";
  card.style.top = Math.max(16, Math.min(top, room[1])) + "px";
}

// ---- mouse, fingers, keys
function covers(corners, x, y) {
  const sides = corners.map(([a, b], number) => {
    const [c, d] = corners[(number + 1) % 4];
    return (c - a) * (y - b) - (d - b) * (x - a) > 0;
  });
  return sides.length > 0 && sides.every(side => side === sides[0]);
}
function cameraAt(x, y, reach = 18) {
  if (!element("cameras").checked) return -1;
  const m = matrix(), grow = Number(element("length").value);
  let best = -1, least = reach;
  for (let camera = 0; camera < cameraCount; camera++) {
    if (camera === inside) continue;
    const eye = corner(camera, 0), face = middleOf(camera), covered = covers(cornersOnScreen(camera, m), x, y);
    for (const part of [0, 0.5, 1]) {
      const place = onScreen(mix(eye, face, grow * part), m), away = place ? Math.hypot(place[0] - x, place[1] - y) : Infinity;
      const apart = covered && place ? reach * away / (away + reach) : away;  // all of a photo is within reach
      if (apart < least) { least = apart; best = camera; }
    }
  }
  return best;
}
const fingers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", event => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, event); moved = 0; flight = null;
});
canvas.addEventListener("pointermove", event => {
  const before = fingers.get(event.pointerId);
  if (!before) { choose(cameraAt(event.clientX, event.clientY)); return; }
  const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
  moved += Math.abs(dx) + Math.abs(dy);
  if (moved > 4) canvas.classList.add("turning");
  if (fingers.size === 2) {
    const other = [...fingers.values()].find(finger => finger.pointerId !== event.pointerId);
    const apart = finger => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY);
    zoom(apart(before) / Math.max(apart(event), 1)); pan(dx / 2, dy / 2);
  } else if (event.buttons & 2 || event.shiftKey) pan(dx, dy);
  else orbit(dx * 0.006, dy * 0.006);
  fingers.set(event.pointerId, event); wanted = true;
});
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, event => {
  fingers.delete(event.pointerId); canvas.classList.remove("turning");
  if (end === "pointercancel" || moved > 4) return;
  const touched = event.pointerType === "touch", found = cameraAt(event.clientX, event.clientY, touched ? 30 : 18);
  if (found >= 0 && (found === chosen || !touched)) { choose(-1); lookThrough(found); }
  else choose(found);  // a finger cannot hover: its first tap shows the photo, the second looks through it
});
canvas.addEventListener("pointerleave", event => { if (event.pointerType !== "touch") choose(-1); });
canvas.addEventListener("wheel", event => { event.preventDefault(); flight = null; zoom(Math.exp(event.deltaY * (event.deltaMode ? 0.04 : 0.0012))); wanted = true; }, { passive: false });
canvas.addEventListener("contextmenu", event => event.preventDefault());
canvas.addEventListener("dblclick", event => { if (cameraAt(event.clientX, event.clientY, 30) < 0 && inside < 0) fly({ ...home }); });
const next = step => { if (cameraCount) { choose(-1); lookThrough((inside < 0 && step < 0 ? cameraCount - 1 : inside + step + cameraCount) % cameraCount); } };
const turning = {
  ArrowLeft: () => orbit(-0.1, 0), ArrowRight: () => orbit(0.1, 0), ArrowUp: () => orbit(0, 0.1), ArrowDown: () => orbit(0, -0.1),
  "+": () => zoom(0.85), "-": () => zoom(1.18),
};
const travelling = { PageDown: () => next(1), PageUp: () => next(-1), Home: () => fly({ ...home }), Escape: () => fly({ ...home }) };
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === element("find")) return;
  const step = travelling[event.key] || (event.target.closest("#panel") ? null : turning[event.key]);  // arrows also move sliders
  if (step) { flight = null; step(); wanted = true; event.preventDefault(); }
});
for (const id of ["size", "length", "opacity", "cameras", "photos"]) element(id).addEventListener("input", () => { wanted = true; });
element("reset").addEventListener("click", () => fly({ ...home }));
function setTheme(theme) { root.dataset.theme = theme; element("theme").textContent = theme === "light" ? "Dark" : "Light"; wanted = true; }
element("theme").addEventListener("click", () => setTheme(root.dataset.theme === "light" ? "dark" : "light"));
setTheme(window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");

// ---- the list of photos
const rows = model.names.map((name, camera) => {
  const row = document.createElement("li"), button = document.createElement("button");
  button.textContent = button.title = name;
  for (const begin of ["focus", "pointerenter"]) button.addEventListener(begin, () => choose(camera));
  for (const end of ["blur", "pointerleave"]) button.addEventListener(end, () => choose(-1));
  button.addEventListener("click", () => lookThrough(camera));
  row.append(button);
  return row;
});
document.querySelector("ul").append(...rows);
element("browse").addEventListener("keydown", event => {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key], buttons = rows.filter(row => !row.hidden).map(row => row.firstChild);
  const place = buttons.indexOf(document.activeElement);  // -1 in the search field, which is above them all
  if (!way || place + way < -1) return;
  const goal = buttons[Math.max(0, place + way)];
  element("list").open = true;
  if (goal) goal.focus();
  event.preventDefault();
});
element("find").addEventListener("input", () => {
  const asked = element("find").value.toLowerCase();
  rows.forEach((row, camera) => { row.hidden = !model.names[camera].toLowerCase().includes(asked); });
  element("none").hidden = rows.some(row => !row.hidden);
  element("list").open = true;
});
element("find").addEventListener("keydown", event => {
  const found = rows.findIndex(row => !row.hidden);
  if (event.key === "Enter" && found >= 0) { choose(-1); lookThrough(found); }
});

// ---- words
document.title = model.title;
document.querySelector("h1").textContent = model.title;
for (const [term, value] of Object.entries(model.facts)) {
  const dt = document.createElement("dt"), dd = document.createElement("dd");
  dt.textContent = term; dd.textContent = value;
  document.querySelector("dl").append(dt, dd);
}
element("hint").textContent = window.matchMedia("(pointer: coarse)").matches
  ? "Drag to turn, two fingers to move, pinch to zoom. Tap a camera to see its photo, tap again to look through it."
  : "Drag to turn, right button to move, wheel to zoom. Click a camera to look through it; Page Down goes on to the next, Escape leaves.";
for (const label of document.querySelectorAll(".faces")) label.hidden = !model.thumbnails.some(Boolean);
element("size").value = model.point_size;
if (window.innerWidth < 600) element("about").open = false;
requestAnimationFrame(draw);

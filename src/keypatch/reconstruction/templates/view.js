"use strict";
const model = JSON.parse(document.getElementById("model").textContent);
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const xyz = new Float32Array(bytes(model.xyz).buffer), colours = bytes(model.colours);
const frusta = new Float32Array(bytes(model.frusta).buffer);  // 5 corners each: the eye, then the photo clockwise from its top left
const count = xyz.length / 3, cameraCount = model.names.length;
const picture = camera => model.thumbnails[camera] && "data:image/jpeg;base64," + model.thumbnails[camera];
const element = id => document.getElementById(id), canvas = document.querySelector("canvas"), root = document.documentElement;

// ---- vectors
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const unit = a => scaled(a, 1 / (Math.hypot(...a) || 1));
const mix = (a, b, s) => add(scaled(a, 1 - s), b, s);
const turned = (a, axis, angle) =>  // Rodrigues
  add(add(scaled(a, Math.cos(angle)), cross(axis, a), Math.sin(angle)), axis, dot(axis, a) * (1 - Math.cos(angle)));
const corner = (camera, number) => Array.from(frusta.subarray(15 * camera + 3 * number, 15 * camera + 3 * number + 3));
const middleOf = camera => scaled([1, 2, 3, 4].map(number => corner(camera, number)).reduce((a, b) => add(a, b)), 0.25);

// ---- the eye: where it is, what it looks at, what is up
const panelEdge = () => canvas.clientWidth < 700 ? 0 : element("panel").offsetLeft + element("panel").offsetWidth;  // the view's middle is that of the room beside it
const home = { eye: model.view.eye, target: model.view.target, up: model.view.up,
  tangent: model.view.tangent * Math.max(1, model.view.aspect * window.innerHeight / (window.innerWidth - panelEdge())) };  // narrow windows see as much
const MARGIN = 56;  // pixels around a photo that is looked through
let view = { ...home }, flight = null, wanted = true;
let chosen = -1, inside = -1;  // the camera that is pointed at, the one that is looked through
const axes = () => {
  const forward = unit(add(view.target, view.eye, -1)), right = unit(cross(forward, view.up));
  return { forward, right, up: cross(right, forward) };
};
function orbit(dx, dy) {
  inside = -1;
  const { right, forward } = axes(), away = add(view.eye, view.target, -1);
  const height = Math.asin(Math.max(-1, Math.min(1, -dot(forward, view.up))));
  const tilt = Math.max(-1.5, Math.min(1.5, height + dy)) - height;
  view.eye = add(view.target, turned(turned(away, right, -tilt), view.up, -dx));
}
function pan(dx, dy) {
  inside = -1;
  const { right, up } = axes(), span = 2 * view.tangent * Math.hypot(...add(view.eye, view.target, -1)) / canvas.clientHeight;
  const shift = add(scaled(right, -dx * span), up, dy * span);
  view.eye = add(view.eye, shift); view.target = add(view.target, shift);
}
function zoom(factor) { inside = -1; view.eye = add(view.target, add(view.eye, view.target, -1), factor); }
function fly(goal, camera = -1) { flight = { from: view, goal, start: performance.now() }; inside = camera; wanted = true; }
function lookThrough(camera) {
  const eye = corner(camera, 0), face = [1, 2, 3, 4].map(number => corner(camera, number));
  const forward = add(middleOf(camera), eye, -1), depth = Math.hypot(...forward);
  const height = Math.hypot(...add(face[0], face[3], -1)), width = Math.hypot(...add(face[1], face[0], -1));
  const tall = canvas.clientHeight, room = [canvas.clientWidth - panelEdge(), tall].map(side => Math.max(side - 2 * MARGIN, side / 2));
  const tangent = tall * Math.max(width / room[0], height / room[1]) / 2 / depth;
  fly({ eye, target: add(eye, unit(forward), model.view.depth), up: unit(add(face[0], face[3], -1)), tangent }, camera);
}

// ---- matrices and projection
function matrix() {
  const { forward, right, up } = axes(), aspect = canvas.width / canvas.height, near = 0.002, far = 60, f = 1 / view.tangent;
  const a = (far + near) / (near - far), b = 2 * far * near / (near - far);
  const row = (axis, s) => [s * axis[0], s * axis[1], s * axis[2], -s * dot(axis, view.eye)];
  const y = row(up, f), z = row(forward, -a), w = row(forward, 1), shift = panelEdge() / canvas.clientWidth;
  const x = row(right, f / aspect).map((value, column) => value + shift * w[column]);
  z[3] += b;
  return new Float32Array([0, 1, 2, 3].flatMap(column => [x[column], y[column], z[column], w[column]]));
}
function onScreen(point, m) {
  const value = row => m[row] * point[0] + m[4 + row] * point[1] + m[8 + row] * point[2] + m[12 + row], w = value(3);
  return w <= 0 ? null : [(value(0) / w + 1) / 2 * canvas.clientWidth, (1 - value(1) / w) / 2 * canvas.clientHeight];
}
function cornersOnScreen(camera, m) {  // of its photo; empty if one is behind the eye
  const eye = corner(camera, 0), grow = Number(element("length").value);
  const found = [1, 2, 3, 4].map(number => onScreen(mix(eye, corner(camera, number), grow), m));
  return found.every(Boolean) ? found : [];
}

// The page: files in, matches drawn. Files come from the inputs, or from the address: ?model=a.onnx&first=b.jpg&second=c.jpg
import { detect } from "./detect.js";
import { Describer, match } from "./match.js";

const LONGEST = 1024; // pixels: larger photos are made smaller
const KEYPOINTS = 1000;

const inputs = Object.fromEntries(["model", "first", "second", "ratio"].map((id) => [id, document.getElementById(id)]));
const status = document.getElementById("status");
const files = {};
let asked = 0; // the run that counts is the last one

async function readPhoto(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [Math.round(bitmap.width * scale), Math.round(bitmap.height * scale)];
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const pixels = new Uint8Array(width * height);
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] = (19595 * data[4 * i] + 38470 * data[4 * i + 1] + 7471 * data[4 * i + 2] + 32768) >> 16;
  }
  return { width, height, pixels, canvas };
}

function draw([first, second], [one, other], matches) {
  const picture = document.getElementById("picture");
  [picture.width, picture.height] = [first.width + second.width, Math.max(first.height, second.height)];
  const context = picture.getContext("2d");
  context.drawImage(first.canvas, 0, 0);
  context.drawImage(second.canvas, first.width, 0);
  matches.forEach(([i, j], number) => {
    context.strokeStyle = `hsl(${(number * 137) % 360} 90% 55% / 0.7)`;
    context.beginPath();
    context.moveTo(one[i].x + 0.5, one[i].y + 0.5); // a canvas counts from the corner of the first pixel
    context.lineTo(first.width + other[j].x + 0.5, other[j].y + 0.5);
    context.stroke();
  });
}

async function run() {
  const { model, first, second } = files;
  if (!model || !first || !second) return;
  const mine = ++asked;
  try {
    status.textContent = "Matching ...";
    const describer = await Describer.load(new Uint8Array(await model.arrayBuffer()));
    const photos = [await readPhoto(first), await readPhoto(second)];
    const start = performance.now();
    const keypoints = photos.map((photo) => detect(photo, KEYPOINTS));
    const detected = performance.now();
    const described = [];
    for (const k of [0, 1]) described.push(await describer.describe(photos[k], keypoints[k]));
    const matches = match(...described, Number(inputs.ratio.value));
    if (mine !== asked) return;
    draw(photos, keypoints, matches);
    const seconds = (from, to) => ((to - from) / 1000).toFixed(1);
    status.textContent =
      `${keypoints[0].length} and ${keypoints[1].length} keypoints, ${matches.length} matches; ` +
      `${seconds(start, detected)} s to detect, ${seconds(detected, performance.now())} s to describe and match.`;
  } catch (error) {
    status.textContent = `That did not work: ${error.message}`;
  }
}

for (const name of ["model", "first", "second"]) {
  inputs[name].addEventListener("change", () => {
    files[name] = inputs[name].files[0];
    run();
  });
}
inputs.ratio.addEventListener("change", run);

for (const [name, place] of new URLSearchParams(location.search)) {
  if (name in inputs && name !== "ratio") {
    const answer = await fetch(place);
    if (answer.ok) files[name] = await answer.blob();
    else status.textContent = `${place} is not there.`;
  }
}
run();

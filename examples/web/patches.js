// The patch cutter of keypatch: a grey image and keypoints in, patches out (docs/conventions.md, "The cutter in full").
// An image is {width, height, pixels}; a keypoint {x, y, sigma, angle}, and shape [s11, s12, s21, s22] where it is sheared.

const HALVING = [1, 4, 6, 4, 1];
const SOFTENING = [1, 48, 158, 48, 1];

// Taps of sum `total` across and down, the border repeated, rounded once; every `stride`-th pixel and row.
function filter({ width, height, pixels }, taps, total, stride) {
  const across = new Float64Array(width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let k = -2; k <= 2; k++) sum += taps[k + 2] * pixels[y * width + Math.min(Math.max(x + k, 0), width - 1)];
      across[y * width + x] = sum;
    }
  }
  const made = { width: Math.ceil(width / stride), height: Math.ceil(height / stride) };
  made.pixels = new Uint8Array(made.width * made.height);
  for (let y = 0; y < made.height; y++) {
    for (let x = 0; x < made.width; x++) {
      let sum = 0;
      for (let k = -2; k <= 2; k++) {
        sum += taps[k + 2] * across[Math.min(Math.max(y * stride + k, 0), height - 1) * width + x * stride];
      }
      made.pixels[y * made.width + x] = Math.floor(sum / (total * total) + 0.5);
    }
  }
  return made;
}

export class PatchCutter {
  constructor(image) {
    this.levels = [image];
  }

  // Image 2k is the photograph halved k times; image 2k + 1 has the same pixels, softened.
  level(number) {
    this.levels[number] ??=
      number % 2 ? filter(this.level(number - 1), SOFTENING, 256, 1) : filter(this.level(number - 2), HALVING, 16, 2);
    return this.levels[number];
  }

  // Writes the side * side grey values of a patch, 0..255, into `out` from `start` on, row by row.
  cut({ x, y, sigma, angle, shape = [1, 0, 0, 1] }, patchSigmas, side, out, start) {
    const [s11, s12, s21, s22] = shape;
    const scale = (sigma * patchSigmas) / side;
    const c = Math.cos(angle);
    const s = Math.sin(angle);
    const [a, b] = [scale * (s11 * c + s12 * s), scale * (-s11 * s + s12 * c)];
    const [d, e] = [scale * (s21 * c + s22 * s), scale * (-s21 * s + s22 * c)];
    const stretch = (Math.hypot(a + e, d - b) + Math.hypot(a - e, b + d)) / 2; // the larger singular value
    const photo = this.levels[0];
    const coarsest = 2 * Math.floor(Math.log2(Math.max(photo.width, photo.height))) + 1;
    const number = Math.min(Math.max(Math.floor(2 * Math.log2(stretch)), 0), coarsest);
    const image = this.level(number);
    const shrunk = 2 ** -Math.floor(number / 2); // halving keeps pixel 0 at 0
    const middle = (side - 1) / 2;
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) {
        const u = x + a * (i - middle) + b * (j - middle);
        const v = y + d * (i - middle) + e * (j - middle);
        out[start + j * side + i] = sample(image, u * shrunk, v * shrunk);
      }
    }
  }
}

// Bilinear, rounded to a whole grey value; beyond the image its border is repeated.
function sample({ width, height, pixels }, u, v) {
  const [left, top] = [Math.floor(u), Math.floor(v)];
  const [p, q] = [u - left, v - top];
  const column = (at) => Math.min(Math.max(at, 0), width - 1);
  const row = (at) => Math.min(Math.max(at, 0), height - 1) * width;
  const [x0, x1, y0, y1] = [column(left), column(left + 1), row(top), row(top + 1)];
  const above = (1 - p) * pixels[y0 + x0] + p * pixels[y0 + x1];
  const below = (1 - p) * pixels[y1 + x0] + p * pixels[y1 + x1];
  return Math.round((1 - q) * above + q * below);
}

// Upright keypoints of a grey image: extrema of differences of Gaussians (Lowe 2004), the strongest first.
// Simpler than OpenCV's SIFT: no doubled image, no dominant angles.

const FIRST = 1.6; // sigma of the first image of an octave
const STEPS = 3; // scales per octave
const CONTRAST = 0.013; // of the grey range: weakest extremum
const EDGE = 10; // most elongated: ratio of the two curvatures
const SMALLEST = 32; // pixels: an octave is at least so wide and high

export function detect({ width, height, pixels }, most) {
  const found = [];
  let image = { width, height, pixels: Float32Array.from(pixels, (value) => value / 255) };
  image = blur(image, Math.sqrt(FIRST ** 2 - 0.5 ** 2)); // a photograph has a blur of half a pixel of its own
  for (let octave = 0; Math.min(image.width, image.height) >= SMALLEST; octave++) {
    const images = [image];
    for (let k = 1; k < STEPS + 3; k++) {
      const [before, after] = [FIRST * 2 ** ((k - 1) / STEPS), FIRST * 2 ** (k / STEPS)];
      images.push(blur(images[k - 1], Math.sqrt(after ** 2 - before ** 2)));
    }
    const differences = images.slice(1).map((next, k) => next.pixels.map((value, i) => value - images[k].pixels[i]));
    findExtrema(differences, image.width, image.height, octave, found);
    image = halve(images[STEPS]);
  }
  return found.sort((one, other) => other.response - one.response).slice(0, most);
}

function findExtrema(levels, width, height, octave, found) {
  const border = 5;
  for (let k = 1; k <= STEPS; k++) {
    const [below, here, above] = [levels[k - 1], levels[k], levels[k + 1]];
    for (let y = border; y < height - border; y++) {
      for (let x = border; x < width - border; x++) {
        const i = y * width + x;
        const value = here[i];
        if (Math.abs(value) < 0.5 * CONTRAST || !isExtremum(value, i, width, below, here, above)) continue;
        const dxx = here[i - 1] + here[i + 1] - 2 * value;
        const dyy = here[i - width] + here[i + width] - 2 * value;
        const dxy = (here[i + width + 1] - here[i + width - 1] - here[i - width + 1] + here[i - width - 1]) / 4;
        const determinant = dxx * dyy - dxy * dxy;
        if (determinant <= 0 || (dxx + dyy) ** 2 * EDGE >= (EDGE + 1) ** 2 * determinant) continue;
        // the top of a parabola in each of the three directions
        const dx = top(here[i - 1], value, here[i + 1]);
        const dy = top(here[i - width], value, here[i + width]);
        const dk = top(below[i], value, above[i]);
        const slopes = (here[i + 1] - here[i - 1]) * dx + (here[i + width] - here[i - width]) * dy + (above[i] - below[i]) * dk;
        const response = Math.abs(value + slopes / 4);
        if (response < CONTRAST) continue;
        const scale = 2 ** octave; // halving keeps pixel 0 at 0
        found.push({
          x: (x + dx) * scale,
          y: (y + dy) * scale,
          sigma: FIRST * 2 ** ((k + dk) / STEPS) * scale,
          angle: 0,
          response,
        });
      }
    }
  }
}

function isExtremum(value, i, width, ...levels) {
  for (const level of levels) {
    for (let j = i - width; j <= i + width; j += width) {
      for (let at = j - 1; at <= j + 1; at++) {
        if (value > 0 ? level[at] > value : level[at] < value) return false;
      }
    }
  }
  return true;
}

function top(before, here, after) {
  const curvature = before + after - 2 * here;
  return curvature === 0 ? 0 : Math.min(Math.max((before - after) / (2 * curvature), -0.5), 0.5);
}

function blur({ width, height, pixels }, sigma) {
  const reach = Math.ceil(3 * sigma);
  const taps = Array.from({ length: 2 * reach + 1 }, (_, k) => Math.exp(-((k - reach) ** 2) / (2 * sigma * sigma)));
  const total = taps.reduce((sum, tap) => sum + tap);
  const across = new Float32Array(pixels.length);
  const made = new Float32Array(pixels.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let k = -reach; k <= reach; k++) sum += taps[k + reach] * pixels[y * width + Math.min(Math.max(x + k, 0), width - 1)];
      across[y * width + x] = sum / total;
    }
  }
  for (let y = 0; y < height; y++) {
    for (let k = -reach; k <= reach; k++) {
      const [from, tap] = [Math.min(Math.max(y + k, 0), height - 1) * width, taps[k + reach] / total];
      for (let x = 0; x < width; x++) made[y * width + x] += tap * across[from + x];
    }
  }
  return { width, height, pixels: made };
}

function halve({ width, height, pixels }) {
  const made = { width: Math.ceil(width / 2), height: Math.ceil(height / 2) };
  made.pixels = new Float32Array(made.width * made.height);
  for (let y = 0; y < made.height; y++) {
    for (let x = 0; x < made.width; x++) made.pixels[y * made.width + x] = pixels[2 * y * width + 2 * x];
  }
  return made;
}

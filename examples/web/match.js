// Describes keypoints with an exported descriptor and matches two sets of descriptors.
import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

import { PatchCutter } from "./patches.js";

const AT_ONCE = 128; // patches

export class Describer {
  // `bytes` of a file of `keypatch export --format onnx`.
  static async load(bytes) {
    const patchSigmas = Number(entry(bytes, "keypatch.patch_sigmas"));
    const side = Number(entry(bytes, "keypatch.patch_size"));
    return new Describer(await ort.InferenceSession.create(bytes), side, patchSigmas);
  }

  constructor(session, side, patchSigmas) {
    Object.assign(this, { session, side, patchSigmas });
  }

  // Descriptors of unit length, one after the other, and their dimension.
  async describe(image, keypoints) {
    const cutter = new PatchCutter(image);
    const size = this.side * this.side;
    const parts = [];
    let dim = 0;
    for (let start = 0; start < keypoints.length; start += AT_ONCE) {
      const some = keypoints.slice(start, start + AT_ONCE);
      const patches = new Float32Array(some.length * size);
      some.forEach((keypoint, i) => cutter.cut(keypoint, this.patchSigmas, this.side, patches, i * size));
      const input = new ort.Tensor("float32", patches, [some.length, 1, this.side, this.side]);
      const { descriptors } = await this.session.run({ patches: input });
      dim = descriptors.dims[1];
      parts.push(descriptors.data);
    }
    const rows = new Float32Array(keypoints.length * dim);
    parts.forEach((part, i) => rows.set(part, i * AT_ONCE * dim));
    return { rows, dim, count: keypoints.length };
  }
}

// onnxruntime-web does not show the metadata of a model, so they are read off the file: in an ONNX file an entry is its
// key, then the byte 0x12, the length of the value (below 128) and the value.
function entry(bytes, key) {
  const wanted = new TextEncoder().encode(key);
  for (let at = bytes.length - wanted.length - 2; at >= 0; at--) {
    if (wanted.every((byte, k) => bytes[at + k] === byte)) {
      const [tag, length] = bytes.slice(at + wanted.length, at + wanted.length + 2);
      const begin = at + wanted.length + 2;
      if (tag === 0x12 && length < 128) return new TextDecoder().decode(bytes.slice(begin, begin + length));
    }
  }
  throw new Error(`The model has no entry ${key}. Was it exported by keypatch?`);
}

// Mutual nearest neighbours that pass the ratio test from both sides: [number in first, number in second].
export function match(first, second, ratio) {
  const nearest = (count) => Array.from({ length: count }, () => ({ index: -1, closest: -2, second: -2 }));
  const [ofFirst, ofSecond] = [nearest(first.count), nearest(second.count)];
  for (let i = 0; i < first.count; i++) {
    for (let j = 0; j < second.count; j++) {
      let cosine = 0;
      for (let k = 0; k < first.dim; k++) cosine += first.rows[i * first.dim + k] * second.rows[j * second.dim + k];
      see(ofFirst[i], j, cosine);
      see(ofSecond[j], i, cosine);
    }
  }
  const distance = (cosine) => Math.sqrt(Math.max(0, 2 - 2 * cosine)); // of unit vectors
  const passes = (one) => one.index >= 0 && distance(one.closest) < ratio * distance(one.second);
  return ofFirst.flatMap((one, i) => {
    const other = ofSecond[one.index];
    return passes(one) && other.index === i && passes(other) ? [[i, one.index]] : [];
  });
}

function see(one, candidate, cosine) {
  if (cosine > one.closest) {
    one.second = one.closest;
    one.closest = cosine;
    one.index = candidate;
  } else if (cosine > one.second) {
    one.second = cosine;
  }
}

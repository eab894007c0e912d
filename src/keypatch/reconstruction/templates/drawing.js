// ---- drawing
const gl = canvas.getContext("webgl", { antialias: true, alpha: false });  // what shines through a photo is drawn, not the page below
if (!gl) { element("failed").hidden = false; element("panel").hidden = true; throw new Error("no WebGL"); }
function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, "precision mediump float;" + fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source); gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  return made;
}
function buffer(data) {
  const made = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, made); gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
  return made;
}
function attribute(from, name, size, kind, data, normalized = false) {
  const place = gl.getAttribLocation(from, name);
  gl.bindBuffer(gl.ARRAY_BUFFER, data); gl.enableVertexAttribArray(place); gl.vertexAttribPointer(place, size, kind, normalized, 0, 0);
}
const uniform = (from, name) => gl.getUniformLocation(from, name);

const dots = program(
  `attribute vec3 place; attribute vec3 colour; uniform mat4 camera; uniform float size; uniform float distance; varying vec3 tint;
   void main() { gl_Position = camera * vec4(place, 1.0); tint = colour; gl_PointSize = clamp(size * sqrt(distance / gl_Position.w), 1.0, 64.0); }`,
  `varying vec3 tint; uniform vec3 ground;
   void main() {
     float away = length(gl_PointCoord - 0.5);
     if (away > 0.5) discard;
     float hidden = 1.0 - smoothstep(0.1, 0.4, distance(tint, ground));  // a colour like the ground's gets a grey rim
     gl_FragColor = vec4(mix(tint, vec3(0.5), hidden * smoothstep(0.2, 0.4, away)), 1.0);
   }`);
const strokes = program(  // a segment is two triangles, widened on the screen
  `attribute vec3 eye; attribute vec3 start; attribute vec3 end; attribute vec2 side; attribute float number;
   uniform mat4 camera; uniform vec2 screen; uniform float width; uniform float grow; uniform float chosen; varying float lit;
   void main() {
     vec4 a = camera * vec4(eye + grow * (start - eye), 1.0), b = camera * vec4(eye + grow * (end - eye), 1.0);
     vec2 along = (b.xy / max(b.w, 1e-6) - a.xy / max(a.w, 1e-6)) * screen;
     vec2 normal = length(along) > 0.0 ? normalize(vec2(-along.y, along.x)) : vec2(0.0);
     gl_Position = mix(a, b, side.x);
     gl_Position.xy += side.y * normal * width / screen * gl_Position.w;
     lit = abs(number - chosen) < 0.5 ? 1.0 : 0.0;
   }`,
  `uniform vec3 tint; uniform vec3 light; varying float lit; void main() { gl_FragColor = vec4(mix(tint, light, lit), 1.0); }`);

const EDGES = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [2, 3], [3, 4], [4, 1]];
const segments = { eye: [], start: [], end: [], side: [], number: [] };
for (let camera = 0; camera < cameraCount; camera++)
  for (const [a, b] of EDGES)
    for (const side of [[0, -1], [0, 1], [1, -1], [1, -1], [0, 1], [1, 1]]) {
      segments.eye.push(...corner(camera, 0)); segments.start.push(...corner(camera, a)); segments.end.push(...corner(camera, b));
      segments.side.push(...side); segments.number.push(camera);
    }
const stored = Object.fromEntries(Object.entries(segments).map(([name, values]) => [name, buffer(new Float32Array(values))]));
const places = buffer(xyz), tints = buffer(colours);
const pictures = program(
  `attribute vec3 eye; attribute vec3 place; attribute vec2 inside; uniform mat4 camera; uniform float grow; varying vec2 at;
   void main() { gl_Position = camera * vec4(eye + grow * (place - eye), 1.0); at = inside; }`,
  `uniform sampler2D photo; uniform float opacity; varying vec2 at; void main() { gl_FragColor = vec4(texture2D(photo, at).rgb, opacity); }`);
const quads = { eye: [], place: [], inside: [] }, textures = new Map();
for (let camera = 0; camera < cameraCount; camera++)
  for (const [number, place] of [[1, [0, 0]], [2, [1, 0]], [4, [0, 1]], [3, [1, 1]]]) {
    quads.eye.push(...corner(camera, 0)); quads.place.push(...corner(camera, number)); quads.inside.push(...place);
  }
const laid = Object.fromEntries(Object.entries(quads).map(([name, values]) => [name, buffer(new Float32Array(values))]));
function texture(image) {  // a square whose side is a power of two can be reduced smoothly
  const square = document.createElement("canvas"), made = gl.createTexture();
  square.width = square.height = 2 ** Math.round(Math.log2(Math.max(image.naturalWidth, image.naturalHeight)));
  square.getContext("2d").drawImage(image, 0, 0, square.width, square.height);
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, gl.RGB, gl.UNSIGNED_BYTE, square);
  gl.generateMipmap(gl.TEXTURE_2D);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
  for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
  return made;
}
for (let camera = 0; camera < cameraCount; camera++)
  if (picture(camera)) {
    const image = new Image();
    image.onload = () => { textures.set(camera, texture(image)); wanted = true; };
    image.src = picture(camera);
  }

function draw(now) {
  if (flight) {
    const part = Math.min(1, (now - flight.start) / 700), s = part * part * (3 - 2 * part), { from, goal } = flight;
    view = { eye: mix(from.eye, goal.eye, s), target: mix(from.target, goal.target, s), up: unit(mix(from.up, goal.up, s)), tangent: from.tangent + s * (goal.tangent - from.tangent) };
    if (part === 1) flight = null;
    wanted = true;
  }
  const ratio = window.devicePixelRatio || 1, width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; wanted = true; }
  if (wanted && width && height) { wanted = false; paint(ratio); }
  requestAnimationFrame(draw);
}
function paint(ratio) {
  const dark = root.dataset.theme !== "light", m = matrix(), ground = dark ? [0.063, 0.078, 0.11] : [0.957, 0.961, 0.969];
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clearColor(...ground, 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.useProgram(dots);
  attribute(dots, "place", 3, gl.FLOAT, places); attribute(dots, "colour", 3, gl.UNSIGNED_BYTE, tints, true);
  gl.uniformMatrix4fv(uniform(dots, "camera"), false, m);
  gl.uniform1f(uniform(dots, "size"), element("size").value * ratio);
  gl.uniform1f(uniform(dots, "distance"), model.view.depth);
  gl.uniform3f(uniform(dots, "ground"), ...ground);
  gl.drawArrays(gl.POINTS, 0, count);
  paintPictures(m);
  if (element("cameras").checked) paintStrokes(m, ratio, dark);
  placeCard(m);
}
function paintPictures(m) {
  gl.useProgram(pictures);
  for (const [name, size] of [["eye", 3], ["place", 3], ["inside", 2]]) attribute(pictures, name, size, gl.FLOAT, laid[name]);
  gl.uniformMatrix4fv(uniform(pictures, "camera"), false, m);
  gl.uniform1f(uniform(pictures, "grow"), element("length").value);
  gl.enable(gl.BLEND); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(1, 1);  // behind its own frame
  const faces = element("cameras").checked && element("photos").checked;
  for (const [camera, photo] of textures) {
    const eye = corner(camera, 0), way = add(middleOf(camera), eye, -1), grow = element("length").value;
    const apart = Math.hypot(...add(add(eye, way, grow), view.eye, -1)) / (grow * Math.hypot(...way));
    const face = faces ? Math.max(0, Math.min(1, (apart - 2) / 3)) : 0;  // who comes near looks through the photo at the model
    const opacity = camera === inside ? Math.max(face, element("opacity").value) : face;
    if (!opacity) continue;
    gl.bindTexture(gl.TEXTURE_2D, photo);
    gl.uniform1f(uniform(pictures, "opacity"), opacity);
    gl.drawArrays(gl.TRIANGLE_STRIP, 4 * camera, 4);
  }
  gl.disable(gl.POLYGON_OFFSET_FILL); gl.disable(gl.BLEND);
}
function paintStrokes(m, ratio, dark) {
  gl.useProgram(strokes);
  for (const [name, size] of [["eye", 3], ["start", 3], ["end", 3], ["side", 2], ["number", 1]]) attribute(strokes, name, size, gl.FLOAT, stored[name]);
  gl.uniformMatrix4fv(uniform(strokes, "camera"), false, m);
  gl.uniform2f(uniform(strokes, "screen"), canvas.width, canvas.height);
  gl.uniform1f(uniform(strokes, "width"), 1.6 * ratio);
  gl.uniform1f(uniform(strokes, "grow"), element("length").value);
  gl.uniform1f(uniform(strokes, "chosen"), chosen);
  gl.uniform3f(uniform(strokes, "tint"), ...(dark ? [1, 0.745, 0.412] : [0.76, 0.39, 0.05]));
  gl.uniform3f(uniform(strokes, "light"), ...(dark ? [1, 1, 1] : [0.1, 0.14, 0.2]));
  gl.drawArrays(gl.TRIANGLES, 0, 6 * EDGES.length * cameraCount);
}

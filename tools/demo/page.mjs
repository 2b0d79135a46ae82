
/* ---- the page; `make demo` puts the module and BYTES, the .wasm in base64, before it ---- */

const began = performance.now();
const bytes = Uint8Array.from(atob(BYTES), (ch) => ch.charCodeAt(0));
const net = await load(bytes);
const ready = performance.now() - began;
const $ = (id) => document.getElementById(id);
const pad = $("pad"), ink = pad.getContext("2d", { willReadFrequently: true }), seen = $("seen").getContext("2d");
const bars = Array.from({ length: 10 }, (_, digit) => {
  const row = document.createElement("li"), name = document.createElement("span"), bar = document.createElement("div"), part = document.createElement("span");
  name.textContent = digit;
  row.append(name, bar, part);
  $("bars").append(row);
  return { bar, part };
});

/* Scales the bounding square of the drawing to 8x8 pixels, because the training digits fill their image. A pixel is the
 * inked fraction of its area. null: nothing is drawn. */
function shrink() {
  const { width: w, height: h } = pad, { data } = ink.getImageData(0, 0, w, h);
  let [left, right, top, bottom] = [w, -1, h, -1];
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++) {
      if (!data[4 * (y * w + x) + 3]) continue;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
  if (right < 0) return null;
  const side = Math.max(right - left, bottom - top) + 1, x0 = (left + right + 1 - side) / 2, y0 = (top + bottom + 1 - side) / 2;
  const image = new Float32Array(64), all = new Float32Array(64);
  for (let v = 0; v < 64; v++)
    for (let u = 0; u < 64; u++) {
      const x = Math.floor(x0 + ((u + 0.5) * side) / 64), y = Math.floor(y0 + ((v + 0.5) * side) / 64), at = (v >> 3) * 8 + (u >> 3);
      all[at]++;
      if (x >= 0 && x < w && y >= 0 && y < h) image[at] += data[4 * (y * w + x) + 3] / 255;
    }
  return image.map((x, i) => x / all[i]);
}

function show(image, probability, us) {
  const best = probability ? probability.indexOf(Math.max(...probability)) : -1;
  $("answer").textContent = best < 0 ? "" : best;
  bars.forEach(({ bar, part }, digit) => {
    const p = probability ? probability[digit] : 0;
    bar.style.width = `${100 * p}%`;
    part.textContent = probability ? `${(100 * p).toFixed(1)}%` : "";
  });
  seen.clearRect(0, 0, 8, 8);
  image?.forEach((x, i) => {
    seen.fillStyle = `rgb(128 128 128 / ${x})`;
    seen.fillRect(i % 8, i >> 3, 1, 1);
  });
  $("facts").textContent = `${bytes.length} bytes of WebAssembly (${net.target}), ready after ${ready.toFixed(1)} ms${us ? `, ${us.toFixed(0)} µs a run` : ""}.`;
}

/* Browser clocks are coarse, so the time of a run is the mean of many. */
function measure(image, runs = 200) {
  const start = performance.now();
  for (let i = 0; i < runs; i++) net.run({ image });
  return ((performance.now() - start) * 1000) / runs;
}

function look(last) {
  const image = shrink();
  if (!image) return show(null, null, 0);
  const { probability } = net.run({ image });
  show(image, probability, last ? measure(image) : 0);
}

function clear() {
  ink.clearRect(0, 0, pad.width, pad.height);
  look(false);
}

function draw(event) {
  const box = pad.getBoundingClientRect(), x = event.clientX - box.left - pad.clientLeft, y = event.clientY - box.top - pad.clientTop;
  if (event.type === "pointerdown") {
    pad.setPointerCapture(event.pointerId);
    Object.assign(ink, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#1b1b1f" });
    ink.beginPath();
    ink.moveTo(x, y);
  }
  if (!event.buttons) return;
  ink.lineTo(x, y);
  ink.stroke();
  look(false);
}

pad.addEventListener("pointerdown", draw);
pad.addEventListener("pointermove", draw);
pad.addEventListener("pointerup", () => look(true));
$("clear").addEventListener("click", clear);
addEventListener("keydown", (event) => event.key === "Escape" && clear());
look(false);
document.body.dataset.ready = "yes";

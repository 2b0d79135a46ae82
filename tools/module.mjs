// Runs a model that ingot has compiled to WebAssembly: in browsers, in workers, in Node.
//
//   import { load } from "./digits.mjs";
//   const net = await load();
//   const { probability } = net.run({ image: new Float32Array(64) });
//
// In: an object with an array per input name. Out: an object with a new array per output name. Loading a model
// allocates all memory; runs allocate only the results. MODEL, a constant after this text, describes the model.

/* The array class of every element type. Floats of 16 bits or fewer are passed as their bits. */
const ARRAY = {
  f64: Float64Array, f32: Float32Array, f16: Uint16Array, bf16: Uint16Array,
  i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, i4: Int8Array, i2: Int8Array,
  u64: BigUint64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array, u4: Uint8Array, u2: Uint8Array,
  f8e4m3fn: Uint8Array, f8e4m3fnuz: Uint8Array, f8e5m2: Uint8Array, f8e5m2fnuz: Uint8Array,
  f8e8m0: Uint8Array, f4e2m1: Uint8Array, bool: Uint8Array,
};
const ALSO = { u8: ["Uint8ClampedArray"], f16: ["Float16Array"] };
const PAGE = 65536, ALIGN = 64;

/** Loads the model. from: a WebAssembly.Module, its bytes, or its address; default: NAME.wasm next to this file. */
export async function load(from = WASM()) {
  const instance = await WebAssembly.instantiate(await compile(from));
  return new Net(instance.exports);
}

/* A string is an address relative to the page. Node has no page: there, a string with a scheme is a URL, any other is a path. */
async function compile(from) {
  if (from instanceof WebAssembly.Module) return from;
  if (from instanceof ArrayBuffer || ArrayBuffer.isView(from)) return WebAssembly.compile(from);
  let answer = from;
  if (typeof from === "string" || from instanceof URL) {
    const onDisk = !globalThis.location && typeof from === "string" && !/^[a-z][a-z\d+.-]+:/i.test(from);
    const where = onDisk ? from : new URL(from, globalThis.location?.href);
    if (onDisk || (where.protocol === "file:" && globalThis.process?.versions?.node)) {
      const { readFile } = await import(/* webpackIgnore: true */ "node:fs/promises");
      return WebAssembly.compile(await readFile(where));
    }
    answer = await fetch(where);
  }
  if (!answer.ok) throw new Error(`${answer.url}: ${answer.status} ${answer.statusText}`);
  const streams = answer.headers.get("Content-Type") === "application/wasm";
  return streams ? WebAssembly.compileStreaming(answer) : WebAssembly.compile(await answer.arrayBuffer());
}

/* ---- shapes ---- */

/* An extent is a number, or { text, most, base, of: [[symbol, factor], ...] }: base plus the sum of factor * symbol.
 * Without `of`, only the run can compute it. Returns NaN while a symbol has no size. */
function extent(dim, size) {
  if (typeof dim === "number") return dim;
  if (!dim.of) return NaN;
  return dim.of.reduce((sum, [symbol, factor]) => sum + factor * (size[symbol] ?? NaN), dim.base);
}

const most = (port) => port.dims.reduce((n, dim) => n * (typeof dim === "number" ? dim : dim.most), 1);
const shown = (dims) => `[${dims.map((dim) => dim.text ?? dim)}]`;
const count = (shape) => shape.reduce((n, x) => n * x, 1);

/* If exactly one symbol of the extent has no size, solves for it. check() rejects a size that does not fit. */
function solve(dim, wanted, size) {
  const open = (dim.of ?? []).filter(([symbol]) => size[symbol] === undefined);
  if (open.length !== 1) return;
  const [symbol, factor] = open[0];
  size[symbol] = 0;
  size[symbol] = (wanted - extent(dim, size)) / factor;
}

/* The shape of an array without one: a single unknown extent follows from the number of elements. */
function guess(port, value, size) {
  const known = port.dims.map((dim) => extent(dim, size));
  const open = known.flatMap((x, k) => (Number.isNaN(x) ? [k] : []));
  if (open.length === 1) known[open[0]] = value.data.length / count(known.filter((_, k) => k !== open[0]));
  return open.length > 1 ? undefined : known;
}

/* Computes the sizes of all symbols from the shapes of the inputs. */
function bind(values, size) {
  for (let again = true; again; ) {
    again = false;
    MODEL.inputs.forEach((port, i) => {
      const value = values[i];
      if (value.bound) return;
      value.shape ??= guess(port, value, size);
      if (value.shape?.length !== port.dims.length) return;
      port.dims.forEach((dim, k) => solve(dim, value.shape[k], size));
      value.bound = again = true;
    });
  }
  return size;
}

function check(port, value, size) {
  const wrong = (what) => new RangeError(`input ${port.name}: ${what}, expected ${shown(port.dims)}`);
  if (!value.shape)
    throw new RangeError(`input ${port.name}: expected { data, shape }, because the number of elements does not determine ${shown(port.dims)}`);
  const fits = (dim, k) => !(Math.abs(extent(dim, size) - value.shape[k]) > 0) && Number.isInteger(value.shape[k]);
  if (value.shape.length !== port.dims.length || !port.dims.every(fits))
    throw wrong(value.told ? `shape [${value.shape}]` : `${value.data.length} elements`);
  const large = port.dims.findIndex((dim, k) => value.shape[k] > (dim.most ?? dim) || value.shape[k] < 0);
  if (large >= 0) throw wrong(`shape [${value.shape}], ${port.dims[large].text} from 0 to ${port.dims[large].most}`);
  if (value.data.length !== count(value.shape))
    throw wrong(`${value.data.length} elements${value.told ? ` for shape [${value.shape}]` : ""}`);
}

/* ---- values ---- */

const isNumber = (x) => ["number", "bigint", "boolean"].includes(typeof x);

/* Smallest and largest integer of a type. The elements of floats of 16 bits or fewer are their bits. */
function range(type) {
  const [, sign, digits] = /^([iu])(\d+)$/.exec(type) ?? [];
  const bits = BigInt(digits ?? (type === "bool" ? 1 : 8 * ARRAY[type].BYTES_PER_ELEMENT));
  return sign === "i" ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
}

/* Refuses what Number() would convert silently: strings, null, objects, fractions for integer types, values out of range. */
function fromList(port, list) {
  const Kind = ARRAY[port.type], big = Kind === BigInt64Array || Kind === BigUint64Array;
  const whole = Kind !== Float64Array && Kind !== Float32Array;
  const flat = list.flat(Infinity);
  const wrong = flat.findIndex((x) => !isNumber(x) || (whole && typeof x === "number" && !Number.isInteger(x)));
  if (wrong >= 0) {
    const found = typeof flat[wrong] === "string" ? `the string ${JSON.stringify(flat[wrong])}` : String(flat[wrong]);
    throw new TypeError(`input ${port.name}: element ${wrong} is ${found}, expected ${whole ? "integers" : "numbers"}`);
  }
  const [lo, hi] = whole ? range(port.type) : [];
  const inside = (x) => (whole ? lo <= x && x <= hi : !Number.isFinite(Number(x)) || Number.isFinite(Kind.of(Number(x))[0]));
  const large = flat.findIndex((x) => !inside(x));
  if (large >= 0)
    throw new RangeError(`input ${port.name}: element ${large} is ${flat[large]}, expected ${whole ? `integers from ${lo} to ${hi}` : port.type}`);
  return Kind.from(flat, big ? BigInt : Number);
}

/* Rounds to the nearest 16-bit float, ties to even, and returns its bits. fraction: bits of the mantissa. */
function halfBits(x, fraction) {
  const least = fraction === 10 ? -14 : -126, infinite = 0x7fff >> fraction << fraction;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0, size = Math.abs(x);
  if (Number.isNaN(x)) return infinite | (1 << (fraction - 1));
  if (size === Infinity) return sign | infinite;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, size);
  const power = Math.max((view.getUint16(0) >> 4) - 1023, least);
  const steps = size / 2 ** (power - fraction), down = Math.floor(steps), rest = steps - down;
  const near = down + (rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? 1 : 0);
  return sign | Math.min((power - least) * 2 ** fraction + near, infinite);
}

/* A list holds numbers, never the bits of floats. */
const FRACTION = { f16: 10, bf16: 7 };
function fromNumbers(port, list) {
  if (FRACTION[port.type]) return Uint16Array.from(fromList({ ...port, type: "f64" }, list), (x) => halfBits(x, FRACTION[port.type]));
  if (/^f[84]/.test(port.type))
    throw new TypeError(`input ${port.name}: numbers are not converted to ${port.type}: give its bits, a Uint8Array`);
  return fromList(port, list);
}

function read(port, given) {
  if (given === undefined || given === null) throw new TypeError(`input ${port.name} is missing`);
  const Kind = ARRAY[port.type];
  let data = given.data ?? given;
  if (isNumber(data)) data = [data];
  if (Array.isArray(data)) data = fromNumbers(port, data);
  const kind = data?.constructor?.name;
  if (!(data instanceof Kind) && !(ALSO[port.type] ?? []).includes(kind))
    throw new TypeError(`input ${port.name}: ${kind ?? typeof data}, expected ${Kind.name}`);
  const shape = given.shape && [...given.shape].map(Number);
  return { data, shape, told: shape !== undefined };
}

/* ---- the model ---- */

class Net {
  #wasm;
  #arena; #in; #out; #shape; #size; #tables; #test;

  constructor(exports) {
    this.#wasm = exports;
    let end = exports.__heap_base.value >>> 0;
    const place = (bytes) => {
      const at = Math.ceil(end / ALIGN) * ALIGN;
      end = at + bytes;
      return at;
    };
    const array = (port) => place(most(port) * ARRAY[port.type].BYTES_PER_ELEMENT);
    this.#arena = place(MODEL.arena);
    this.#in = MODEL.inputs.map(array);
    this.#out = MODEL.outputs.map(array);
    this.#shape = MODEL.outputs.map((port) => place(8 * port.dims.length));
    this.#size = place(8 * MODEL.sizes.length);
    const weights = exports[`${MODEL.name}_weight_file`]?.value ?? 0;
    const tables = [[...this.#in, weights], this.#out, this.#shape];
    this.#tables = tables.map((table) => place(4 * table.length));
    this.#test = Math.ceil(end / ALIGN) * ALIGN; // after everything else; the first self-test allocates it
    this.#grow(end);
    tables.forEach((table, i) => new Uint32Array(exports.memory.buffer, this.#tables[i], table.length).set(table));
    this.reset();
  }

  /** Inputs of the model: name, type and shape. A symbolic extent is a string. */
  get inputs() {
    return MODEL.inputs.map(described);
  }

  /** Outputs of the model: name, type and shape. A symbolic extent is a string. */
  get outputs() {
    return MODEL.outputs.map(described);
  }

  /** Target of the code: simd128 or scalar. */
  get target() {
    return this.#text(this.#call("target"));
  }

  /** Runs the model. Inputs: typed arrays, lists of numbers, or { data, shape } where extents are symbolic. */
  run(inputs = {}, { seed = 0 } = {}) {
    const stranger = Object.keys(inputs).find((name) => !MODEL.inputs.some((port) => port.name === name));
    if (stranger !== undefined)
      throw new TypeError(`no input ${stranger}; expected one of: ${MODEL.inputs.map((port) => port.name).join(", ") || "none"}`);
    const size = this.#view("i64", this.#size, MODEL.sizes.length), known = [];
    for (const [symbol, at] of MODEL.kept) known[symbol] = Number(this.#view("i64", this.#arena + at, 1)[0]);
    const values = MODEL.inputs.map((port) => read(port, inputs[port.name]));
    bind(values, known);
    MODEL.inputs.forEach((port, i) => check(port, values[i], known));
    MODEL.sizes.forEach((largest, symbol) => (size[symbol] = BigInt(known[symbol] ?? largest)));
    MODEL.inputs.forEach((port, i) => this.#put(port, this.#in[i], values[i].data));
    MODEL.outputs.forEach((port, i) => {
      this.#view("i64", this.#shape[i], port.dims.length).set(port.dims.map((dim) => BigInt(dim.most ?? dim)));
    });
    const [ins, outs, shapes] = this.#tables;
    const status = this.#call("call", this.#arena, this.#size, BigInt.asIntN(64, BigInt(seed)), ins, outs, shapes);
    if (status) throw new Error(`${MODEL.name}: ${this.#text(this.#call("why", status))}`);
    return Object.fromEntries(MODEL.outputs.map((port, i) => [port.name, this.#take(port, i)]));
  }

  /** Resets the state to that before the first run. Does nothing for a model without state. */
  reset() {
    if (this.#wasm[`${MODEL.name}_reset`]) this.#call("reset", this.#arena);
  }

  /** Compares a built-in run with the stored hash of its results. undefined: the model has no self-test. */
  selftest() {
    if (!MODEL.selftest) return undefined;
    this.#grow(this.#test + MODEL.selftest);
    return this.#call("selftest", this.#test, this.#wasm[`${MODEL.name}_weight_file`]?.value ?? 0) === 0;
  }

  #call(what, ...args) {
    return this.#wasm[`${MODEL.name}_${what}`](...args);
  }

  #grow(end) {
    const { memory } = this.#wasm, more = Math.ceil((end - memory.buffer.byteLength) / PAGE);
    if (more <= 0) return;
    try {
      memory.grow(more);
    } catch {
      throw new RangeError(`${MODEL.name}: needs ${end} bytes of memory, which cannot be allocated`);
    }
  }

  #view(type, at, n) {
    return new ARRAY[type](this.#wasm.memory.buffer, at, n);
  }

  #put(port, at, data) {
    const bits = data instanceof ARRAY[port.type] ? data : new ARRAY[port.type](data.buffer, data.byteOffset, data.length);
    this.#view(port.type, at, bits.length).set(bits);
  }

  #take(port, i) {
    const shape = Array.from(this.#view("i64", this.#shape[i], port.dims.length), Number);
    const data = this.#view(port.type, this.#out[i], count(shape)).slice();
    return Object.defineProperty(data, "shape", { value: Object.freeze(shape) });
  }

  #text(at) {
    const bytes = new Uint8Array(this.#wasm.memory.buffer, at >>> 0);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}

const described = ({ name, type, dims }) => ({ name, type, shape: dims.map((dim) => dim.text ?? dim) });


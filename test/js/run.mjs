// node run.mjs MODULE.mjs REQUEST.json [WASM]: runs a model as it is asked, for test/suite/wasm.py; the answer goes to standard output as JSON.
// REQUEST: a list of steps, each { inputs: { name: { kind, base64, shape?, list? } | { plain } }, seed? }, { reset: true }, { facts: true }, { memory: true } or { selftest: true }.
// Arrays of kind Uint8Array and so on, as elements in base64; list: as a list of numbers; plain: what JSON has, as it is. A step that throws is answered by { error, type }.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [, , path, request, where] = process.argv;
const { load } = await import(pathToFileURL(path));
const wasm = await WebAssembly.compile(await readFile(path.replace(/mjs$/, "wasm")));
const memories = [], instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...args) => {
  const made = await instantiate(...args);
  memories.push(made.exports.memory);
  return made;
};
const net = await load(...(where ? [where] : []));

function decode({ kind, base64, shape, list, plain }) {
  if (kind === undefined) return plain;
  const bytes = Buffer.from(base64, "base64");
  const Kind = globalThis[kind];
  const data = new Kind(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  if (list) return [...data];
  return shape ? { data, shape } : data;
}

function encode(x) {
  return { kind: x.constructor.name, base64: Buffer.from(x.buffer, x.byteOffset, x.byteLength).toString("base64"), shape: x.shape };
}

function step(what) {
  if (what.reset) return net.reset() ?? {};
  if (what.facts) return { inputs: net.inputs, outputs: net.outputs, target: net.target, imports: WebAssembly.Module.imports(wasm) };
  if (what.selftest) return { selftest: net.selftest() };
  if (what.memory) return { bytes: memories.reduce((sum, m) => sum + m.buffer.byteLength, 0) };
  const inputs = Object.fromEntries(Object.entries(what.inputs).map(([name, x]) => [name, decode(x)]));
  const out = net.run(inputs, { seed: what.seed ?? 0 });
  return Object.fromEntries(Object.entries(out).map(([name, x]) => [name, encode(x)]));
}

const answers = JSON.parse(await readFile(request, "utf8")).map((what) => {
  try {
    return step(what);
  } catch (e) {
    return { error: e.message, type: e.name };
  }
});
process.stdout.write(JSON.stringify(answers));

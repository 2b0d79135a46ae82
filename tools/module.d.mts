/** An array, and its extents where the model leaves them open. */
export type Given<T> = T | readonly (number | bigint | boolean)[] | { data: T | readonly (number | bigint | boolean)[]; shape: readonly number[] };

/** A result: a new array, with its extents. */
export type Result<T> = T & { readonly shape: readonly number[] };

export interface Port {
  name: string;
  type: string;
  /** Open extents are texts. */
  shape: (number | string)[];
}

export interface Net {
  readonly inputs: Port[];
  readonly outputs: Port[];
  /** Machine the code is for: simd128, or scalar. */
  readonly target: string;
  /** One run; seed: of random operators. Throws where an input does not fit. */
  run(inputs: Inputs, options?: { seed?: number | bigint }): Outputs;
  /** State as before the first run. */
  reset(): void;
  /** Does this machine compute the bits that ingot did? undefined: the model has no such test. */
  selftest(): boolean | undefined;
}

/** The model, ready to run. from: its module, the bytes of it, or where it is; by default the .wasm beside this file. */
export function load(from?: string | URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module): Promise<Net>;


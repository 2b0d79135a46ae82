/** An input: an array, and its shape if the model has symbolic extents. */
export type InputArray<T> = T | readonly (number | bigint | boolean)[] | { data: T | readonly (number | bigint | boolean)[]; shape: readonly number[] };

/** A result: a new array with its shape. */
export type Result<T> = T & { readonly shape: readonly number[] };

export interface Port {
  name: string;
  type: string;
  /** A symbolic extent is a string. */
  shape: (number | string)[];
}

export interface Net {
  readonly inputs: Port[];
  readonly outputs: Port[];
  /** Target of the code: simd128 or scalar. */
  readonly target: string;
  /** Runs the model. seed: for random operators. Throws if an input does not fit. */
  run(inputs: Inputs, options?: { seed?: number | bigint }): Outputs;
  /** Resets the state to that before the first run. */
  reset(): void;
  /** Compares a built-in run with the stored hash of its results. undefined: the model has no self-test. */
  selftest(): boolean | undefined;
}

/** Loads the model. from: its module, its bytes or its address; default: the .wasm next to this file. */
export function load(from?: string | URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module): Promise<Net>;


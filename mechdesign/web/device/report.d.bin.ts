/** The bytes of report.bin, as a bundler gives them: esbuild with --loader:.bin=binary. */
declare const table: Uint8Array;
export default table;

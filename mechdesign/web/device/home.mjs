// Where a module finds its table: beside itself.

/** The address of report.bin. */
export function defaultTable() {
  return new URL("./report.bin", import.meta.url);
}

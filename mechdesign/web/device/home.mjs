// A module finds its table in its own folder.

/** The address of report.bin. */
export function defaultTable() {
  return new URL("./report.bin", import.meta.url);
}

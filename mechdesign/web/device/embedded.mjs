// A classic script contains its table: base64 in TABLE, which the writer puts before this.

/** The bytes of TABLE. */
export function defaultTable() {
  return Uint8Array.from(atob(TABLE), (character) => character.charCodeAt(0));
}

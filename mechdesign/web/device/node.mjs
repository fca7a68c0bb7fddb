// The client for Node 20 and later. It reads the table in its own folder, and keeps its memory, or a session, in a file of
// yours.
//
//   import { fileStorage, openClient } from "./node.mjs";
//   const client = await openClient({ storage: fileStorage("memory.json") });

import { open, readFile, rename } from "node:fs/promises";

import { openClient as openClientAnywhere, openSession as openSessionAnywhere } from "./report.mjs";

export * from "./report.mjs";

/** Open a client of the table in this folder, unless `table` is passed; `storage` is required. */
export async function openClient(options = {}) {
  return openClientAnywhere({ ...options, table: options.table ?? tableHere() });
}

/** Open a session of the design in this folder, unless `table` is passed; `storage` and `limit` are required. */
export async function openSession(options = {}) {
  return openSessionAnywhere({ ...options, table: options.table ?? tableHere() });
}

function tableHere() {
  return readFile(new URL("./report.bin", import.meta.url));
}

/** A storage in one file that only this user may read (0600). Every write replaces the file and is flushed to the disk.
 * The memory of a client names the reported cells; that of a session, the released reports. Nothing locks the file: one
 * process at a time may use it. */
export function fileStorage(path) {
  const read = async () => {
    try {
      return JSON.parse(await readFile(path, "utf8"));
    } catch (error) {
      if (error.code === "ENOENT") return {};
      throw error;
    }
  };
  return {
    getItem: async (key) => (await read())[key] ?? null,
    setItem: async (key, text) => {
      const part = `${path}.part`;
      const file = await open(part, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify({ ...(await read()), [key]: text }));
        await file.sync();
      } finally {
        await file.close();
      }
      // A rename is atomic: a crash leaves the old file or the new one.
      await rename(part, path);
    },
  };
}

// The client for Node 20 and later: the table from the file beside this one, memory and budget, or a session, in a file of
// yours.
//
//   import { fileStorage, openClient } from "./node.mjs";
//   const client = await openClient({ storage: fileStorage("memory.json") });

import { open, readFile, rename } from "node:fs/promises";

import { openClient as openClientAnywhere, openSession as openSessionAnywhere } from "./report.mjs";

export * from "./report.mjs";

/** A client with the table beside this file, unless `table` is given; `storage` is needed. */
export async function openClient(options = {}) {
  return openClientAnywhere({ ...options, table: options.table ?? tableHere() });
}

/** A session of the design beside this file, unless `table` is given; `storage` and `limit` are needed. */
export async function openSession(options = {}) {
  return openSessionAnywhere({ ...options, table: options.table ?? tableHere() });
}

function tableHere() {
  return readFile(new URL("./report.bin", import.meta.url));
}

/** A storage in one file, of this user alone (0600), replaced whole and flushed to the disk. What a client keeps names the
 * cells that were reported; what a session keeps, what was released. One process at a time: nothing locks it. */
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
      await rename(part, path);
    },
  };
}

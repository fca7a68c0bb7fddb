// The client for Node 20 and later: the table from the file beside this one, memory and budget in a file of yours.
//
//   import { fileStorage, openClient } from "./node.mjs";
//   const client = await openClient({ storage: fileStorage("memory.json") });

import { open, readFile, rename } from "node:fs/promises";

import { openClient as openAnywhere } from "./report.mjs";

export * from "./report.mjs";

/** A client with the table beside this file, unless `table` is given; `storage` is needed. */
export async function openClient(options = {}) {
  return openAnywhere({ ...options, table: options.table ?? readFile(new URL("./report.bin", import.meta.url)) });
}

/** A storage in one file, of this user alone (0600), replaced whole and flushed to the disk. It names the cells that
 * were reported. One process at a time: nothing locks it. */
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

// Files in Node, where a program keeps its memory. Bundles for browsers must not meet an import of Node, so its modules
// are asked for when they are used (process.getBuiltinModule, Node 20.16).

import { ReportError } from "./frame.mjs";

/** A module of Node by name; undefined elsewhere. */
export function moduleOfNode(name) {
  return globalThis.process?.getBuiltinModule?.(name);
}

/** A storage in one file that only this user may read (0600). Every write replaces the file and is flushed to the disk.
 * The memory of a client names the reported cells; that of a session, the released reports. Nothing locks the file: one
 * process at a time may use it. */
export function fileStorage(path) {
  const files = moduleOfNode("node:fs/promises");
  if (!files) throw new ReportError("storage", "fileStorage needs Node 20.16 or later: pass another storage");
  const read = async () => {
    try {
      return JSON.parse(await files.readFile(path, "utf8"));
    } catch (error) {
      if (error.code === "ENOENT") return {};
      throw error;
    }
  };
  return {
    getItem: async (key) => (await read())[key] ?? null,
    setItem: async (key, text) => {
      const part = `${path}.part`;
      const file = await files.open(part, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify({ ...(await read()), [key]: text }));
        await file.sync();
      } finally {
        await file.close();
      }
      // A rename is atomic: a crash leaves the old file or the new one.
      await files.rename(part, path);
    },
  };
}

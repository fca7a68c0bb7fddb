// Opening a page, and proving it: in a worker made of these very lines, or where none may start, here, bit by bit.

const SLICE = 24; // milliseconds of work between two looks at the clock, where there is no worker

/** The page in its texts { contents, packed, seal }: { contents, bytes }, of a region with its map. Rejects
 * where they are damaged. */
async function opened({ contents, packed }) {
  const page = { contents: JSON.parse(contents), bytes: await unpacked(packed) };
  if (page.contents.kind === "region") page.map = await regionClient.readRegion(array(page, "compact"));
  return page;
}

/** Whether the texts of a page have the checksum that stands beside them. */
function isSealed({ contents, packed, seal }) {
  return sha256(new TextEncoder().encode(`${contents}\n${packed}`)) === seal;
}

/** The outcome of `prove`; an error that came is a fault. tell({ words, share }) is called as it goes on. */
async function provenHere(texts, options, tell) {
  try {
    const steps = prove({ ...(await opened(texts)), sealed: isSealed(texts) }, options);
    let until = Date.now() + SLICE;
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (Date.now() < until) continue;
      tell(value);
      await new Promise((resume) => setTimeout(resume));
      until = Date.now() + SLICE;
    }
  } catch (error) {
    return { faults: [{ text: `the data cannot be read: ${error.message}` }], proved: [], given: [], found: {} };
  }
}

/** The same at once, of a page that is open. */
function provenAtOnce(page, texts, options) {
  const steps = prove({ ...page, sealed: isSealed(texts) }, options);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same in a worker made of `source`, the text of this program. */
function proven(texts, options, tell, source) {
  return new Promise((finish) => {
    let worker;
    const here = () => finish(provenHere(texts, options, tell));
    try {
      worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    } catch {
      here();
      return;
    }
    worker.onerror = () => {
      worker.terminate();
      here();
    };
    worker.onmessage = ({ data }) => {
      if (data.told) tell(data.told);
      else {
        worker.terminate();
        finish(data.outcome);
      }
    };
    worker.postMessage({ texts, options });
  });
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = async ({ data }) => {
    const outcome = await provenHere(data.texts, data.options, (told) => self.postMessage({ told }));
    self.postMessage({ outcome });
  };
}

// Opening a page, and proving it: in a worker made of these very lines, or where none may start, here, bit by bit.

const SLICE = 24; // milliseconds of work between two looks at the clock, where there is no worker

/** The page in its text, of a region with its map. Rejects where it is damaged. */
async function opened(packed) {
  const page = await unpackedPage(packed);
  if (page.contents.kind === "region") {
    page.map = await device.readRegion(array(page, "compact"));
    page.map.seals = await sealsOf(array(page, "compact"), page.map);
  }
  return page;
}

/** The last of the steps that are taken before a time, or all of them. */
function run(steps, until = Infinity) {
  for (;;) {
    const step = steps.next();
    if (step.done || Date.now() >= until) return step;
  }
}

/** The outcome of `prove`; an error that came is a fault. tell({ words, share }) is called as it goes on. */
async function provenHere(packed, options, tell) {
  try {
    const steps = prove(await opened(packed), options);
    for (;;) {
      const { done, value } = run(steps, Date.now() + SLICE);
      if (done) return value;
      tell(value);
      await new Promise((resume) => setTimeout(resume));
    }
  } catch (error) {
    return { faults: [{ text: `the data cannot be read: ${error.message}` }], proved: [], given: [], found: {} };
  }
}

/** The same in a worker made of `source`, the text of this program. */
function proven(packed, options, tell, source) {
  return new Promise((finish) => {
    let worker;
    const here = () => finish(provenHere(packed, options, tell));
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
    worker.postMessage({ packed, options });
  });
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = async ({ data }) => {
    const outcome = await provenHere(data.packed, data.options, (told) => self.postMessage({ told }));
    self.postMessage({ outcome });
  };
}

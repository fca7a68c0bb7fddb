// Opens and proves a page: in a worker made of this program, or, where a worker may not start, here in slices of time.

const SLICE = 24; // milliseconds of work between pauses for the page, without a worker

/** Unpack a page, and the device map in it. Rejects if it is damaged. */
async function openPage(packed) {
  const page = await unpackPage(packed);
  if (page.contents.kind === "region") {
    page.map = await device.readRegion(array(page, "compact"));
    page.map.seals = await sealsOf(array(page, "compact"), page.map);
  }
  if (has(page, "packed")) Object.assign(page.made, await unpackTable(array(page, "packed")));
  return page;
}

/** Run steps until a time, or to the end; returns the last step. */
function run(steps, until = Infinity) {
  for (;;) {
    const step = steps.next();
    if (step.done || Date.now() >= until) return step;
  }
}

/** Return the outcome of `prove`; an exception becomes a fault. onProgress({ words, share }) is called in between. */
async function proveHere(packed, options, onProgress) {
  try {
    const steps = prove(await openPage(packed), options);
    for (;;) {
      const { done, value } = run(steps, Date.now() + SLICE);
      if (done) return value;
      onProgress(value);
      // The page draws its progress and answers clicks before the next slice.
      await new Promise((resume) => setTimeout(resume));
    }
  } catch (error) {
    return { faults: [{ text: `the data cannot be read: ${error.message}` }], proved: [], assumed: [], figures: {} };
  }
}

/** The same in a worker for each of `parts` (prove.js), made of `source`, the text of this program; here if one cannot start. */
function proveInWorkers(packed, options, onProgress, source, parts) {
  return new Promise((finish) => {
    const workers = [];
    const end = (outcome) => {
      for (const worker of workers) worker.terminate();
      finish(outcome);
    };
    const here = () => end(proveHere(packed, options, onProgress));
    const outcomes = parts.map(() => null);
    const progress = parts.map(() => ({ words: "", share: 0 }));
    try {
      for (const _ of parts) workers.push(new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))));
    } catch {
      here();
      return;
    }
    parts.forEach((only, k) => {
      workers[k].onerror = here;
      workers[k].onmessage = ({ data }) => {
        progress[k] = data.progress ?? { share: 1 };
        // The words of the part that is behind.
        if (data.progress) onProgress(progress.reduce((a, b) => (b.share < a.share ? b : a)));
        else outcomes[k] = data.outcome;
        if (outcomes.every(Boolean)) end(joinedOutcome(outcomes));
      };
      workers[k].postMessage({ packed, options: { ...options, only } });
    });
  });
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = async ({ data }) => {
    const outcome = await proveHere(data.packed, data.options, (progress) => self.postMessage({ progress }));
    self.postMessage({ outcome });
  };
}

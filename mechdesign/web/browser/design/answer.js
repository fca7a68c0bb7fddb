// In a worker: designs a table, proves it, and answers with the page and the outcome.

/** Design and prove: { page, outcome, text }, or { refused }. onProgress({ words, share }) is called in between. */
async function designAndProve(wanted, onProgress) {
  try {
    const steps = inSteps(wanted);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return { ...value, text: await tableText(value.page) };
      onProgress(value);
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { refused: error.message };
  }
}

/** Design a table, then prove it as on any page. */
function* inSteps(wanted) {
  const page = yield* shareOf(designTable(wanted), 0, 0.9);
  const outcome = yield* shareOf(prove(page), 0.9, 1);
  return { page, outcome, headline: headline(page), claim: claimWords(page) };
}

/** The same steps as the part from `from` to `to` of the whole. */
function* shareOf(steps, from, to) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    yield { words: value.words, share: from + (to - from) * value.share };
  }
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = async ({ data }) => {
    const answer = await designAndProve(data, (progress) => self.postMessage({ progress })).catch((error) => ({
      refused: `the design failed: ${error.message}`,
    }));
    self.postMessage({ answer });
  };
}

"""Pages to look at and to forge: the texts that a page carries, and the program that proves them, in Node."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import kinds
import numpy as np
import xarray as xr
from exported import MAKERS, factored, made

import mechdesign as md
from mechdesign.web.page import proof_script

NODE = shutil.which("node")
RUN = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
(async () => {
  const outcomes = [];
  for (const texts of all) outcomes.push(await provenHere(texts.packed, {}, () => {}));
  for (const { found } of outcomes) delete found.losses;
  console.log(JSON.stringify(outcomes));
})();
"""
CLAIMS = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
(async () => {
  const outcomes = [];
  for (const texts of all) {
    const outcome = { faults: [], proved: [], given: [] };
    try {
      for (const step of proveClaim(await opened(texts.packed), outcome));
    } catch (error) {
      outcome.faults.push({ text: error.message });
    }
    outcomes.push(outcome);
  }
  console.log(JSON.stringify(outcomes));
})();
"""  # the claim alone
SENTENCES = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
Promise.all(all.map(({ packed }) => opened(packed))).then((pages) => {
  const told = (page) => ({ headline: headline(page), claim: claimWords(page), position_claim: placedWords(page) });
  console.log(JSON.stringify(pages.map(told)));
});
"""


@dataclass(frozen=True)
class Texts:
    """What a page carries, in base64."""

    packed: str

    @classmethod
    def in_page(cls, html: str) -> Texts:
        """The text of a page."""
        data = re.search(r'<script id="data" type="text/plain">(.*?)</script>', html, re.S)
        assert data is not None
        return cls(data[1])

    @classmethod
    def of(cls, contents: str, arrays: bytes) -> Texts:
        """A page of contents in JSON and arrays."""
        before = len(contents.encode()).to_bytes(4, "little") + contents.encode()
        whole = before + bytes(-len(before) % 8) + arrays
        return cls(base64.b64encode(gzip.compress(whole, 1, mtime=0)).decode())

    def changed(self, *, said: dict[str, Any] | None = None) -> Texts:
        """The same with other contents at paths such as "protection/factor"."""
        contents = json.loads(self.contents)
        for path, value in (said or {}).items():
            *above, last = path.split("/")
            place = contents
            for name in above:
                place = place[int(name)] if isinstance(place, list) else place[name]
            assert place[last] != value
            place[last] = value
        return Texts.of(json.dumps(contents), self.arrays)

    @property
    def _bytes(self) -> bytes:
        return gzip.decompress(base64.b64decode(self.packed))

    @property
    def contents(self) -> str:
        """The contents, in JSON."""
        return self._bytes[4 : 4 + int.from_bytes(self._bytes[:4], "little")].decode()

    @property
    def arrays(self) -> bytes:
        """The bytes of the arrays."""
        return self._bytes[8 * -(-(4 + int.from_bytes(self._bytes[:4], "little")) // 8) :]


def page_of(result: Any, **options: Any) -> str:
    """The page of a mechanism, a map or an estimate, as it is saved."""
    with tempfile.TemporaryDirectory() as folder:
        return md.web.save_page(result, Path(folder) / "page.html", **options).read_text(encoding="utf-8")


def texts_of(mechanism: xr.Dataset) -> Texts:
    """The texts of the page of a mechanism."""
    return Texts.in_page(page_of(mechanism))


@cache
def honest(name: str) -> Texts:
    """The texts of a mechanism of `exported`, or the factored one."""
    return texts_of(mechanism_of(name))


def mechanism_of(name: str) -> xr.Dataset:
    """A mechanism of `exported`, the factored one there, or one of `kinds`."""
    return factored() if name == "factored" else made(name) if name in MAKERS else kinds.made(name)


def forged(name: str, **variables: np.ndarray) -> Texts:
    """The page of a mechanism with other arrays: what a forger would write."""
    held, texts = mechanism_of(name), honest(name)
    data = bytearray(texts.arrays)
    for key, values in variables.items():
        array = held[key].values
        assert array.shape == values.shape
        start = json.loads(texts.contents)["arrays"][key]["start"]
        data[start : start + array.nbytes] = values.astype(array.dtype).tobytes()
    assert bytes(data) != texts.arrays
    return Texts.of(texts.contents, bytes(data))


def forged_words(name: str, **attributes: Any) -> Texts:
    """The page of a mechanism with other attributes."""
    return honest(name).changed(said={f"attrs/{key}": value for key, value in attributes.items()})


def forged_metric(name: str, attribute: str = "metric", **changes: Any) -> Texts:
    """The page of a mechanism whose metric, or another attribute in JSON, says other than it did."""
    held = json.loads(mechanism_of(name).attrs[attribute])
    return forged_words(name, **{attribute: json.dumps(held | changes)})


def proved_in_node(folder: Path, texts: list[Texts], *, run: str = RUN) -> list[dict[str, Any]]:
    """The outcome of the proof of each page, or of the part of it that `run` is."""
    (folder / "texts.json").write_text(json.dumps([vars(given) for given in texts]))
    return in_node(folder, proof_script() + run)


def in_node(folder: Path, text: str) -> Any:
    """What a program prints as JSON."""
    (folder / "program.cjs").write_text(text)
    done = subprocess.run([str(NODE), "program.cjs"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)

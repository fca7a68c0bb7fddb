"""Pages to look at and to forge: the texts that a page carries, and the program that proves them, in Node."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import kinds
import numpy as np
import xarray as xr
from exported import MAKERS, factored, made

from mechdesign.mechanism.table.dataset import seal
from mechdesign.output.page.page import page_text, proof_script

NODE = shutil.which("node")
RUN = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
(async () => {
  const outcomes = [];
  for (const texts of all) outcomes.push(await provenHere(texts, {}, () => {}));
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
    for (const step of proveClaim(await opened(texts), outcome));
    outcomes.push(outcome);
  }
  console.log(JSON.stringify(outcomes));
})();
"""  # the sentence of the claim alone


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What a page carries: contents and seal as it says them, and its arrays in base64."""

    contents: str
    packed: str
    seal: str

    @classmethod
    def in_page(cls, html: str) -> Texts:
        """The texts of a page."""
        data = re.search(r'<script id="data" type="application/json" data-seal="(\w+)">(.*?)</script>', html, re.S)
        arrays = re.search(r'<script id="arrays" type="text/plain">(.*?)</script>', html, re.S)
        assert data is not None
        assert arrays is not None
        return cls(contents=data[2], packed=arrays[1], seal=data[1])

    def resealed(self) -> Texts:
        """The same with the checksum that they have."""
        return replace(self, seal=hashlib.sha256(f"{self.contents}\n{self.packed}".encode()).hexdigest())

    def changed(self, *, said: dict[str, Any] | None = None) -> Texts:
        """The same with other contents at paths such as "saying.values.loss", sealed again."""
        contents = json.loads(self.contents)
        for path, value in (said or {}).items():
            *above, last = path.split("/")
            place = contents
            for name in above:
                place = place[int(name)] if isinstance(place, list) else place[name]
            assert place[last] != value
            place[last] = value
        return replace(self, contents=json.dumps(contents)).resealed()

    @property
    def arrays(self) -> bytes:
        """The bytes of the arrays."""
        return gzip.decompress(base64.b64decode(self.packed))


def texts_of(mechanism: xr.Dataset) -> Texts:
    """The texts of the page of a mechanism."""
    return Texts.in_page(page_text(mechanism))


@cache
def honest(name: str) -> Texts:
    """The texts of a mechanism of `exported`, or the factored one."""
    return texts_of(mechanism_of(name))


def mechanism_of(name: str) -> xr.Dataset:
    """A mechanism of `exported`, the factored one there, or one of `kinds`."""
    return factored() if name == "factored" else made(name) if name in MAKERS else kinds.made(name)


def forged(name: str, **variables: np.ndarray) -> Texts:
    """The page of a mechanism with other arrays, and checksums that fit them: what a forger would write."""
    return altered(mechanism_of(name), honest(name), "mechanism", variables)


def altered(
    held: xr.Dataset,
    texts: Texts,
    kind: str,
    variables: dict[str, np.ndarray],
    attributes: dict[str, Any] | None = None,
) -> Texts:
    """The page of a file of this kind with other arrays and attributes, and checksums that fit them."""
    data = bytearray(texts.arrays)
    for key, values in variables.items():
        array = held[key].values
        assert array.shape == values.shape
        start = json.loads(texts.contents)["arrays"][key]["start"]
        data[start : start + array.nbytes] = values.astype(array.dtype).tobytes()
        held = held.assign({key: held[key].copy(data=values.astype(array.dtype))})
    said: dict[str, Any] = {}
    for key, value in (attributes or {}).items():
        said[f"attrs/{key}"] = [type(value).__name__, str(value) if isinstance(value, int) else value]
    digest = seal(held.assign_attrs(attributes or {})).attrs["sha256"]
    said |= {"attrs/sha256": ["str", digest], "facts/provenance/seal of its contents": digest}
    return replace(texts, packed=base64.b64encode(gzip.compress(bytes(data), 1)).decode()).changed(said=said)


def forged_words(name: str, **attributes: Any) -> Texts:
    """A mechanism of `exported` with other attributes, its checksum found again."""
    mechanism = made(name)
    assert all(mechanism.attrs[key] != value for key, value in attributes.items())
    changed = seal(mechanism.assign_attrs(attributes))
    texts = texts_of(mechanism)
    told = {f"attrs/{key}": ["float" if isinstance(v, float) else "str", v] for key, v in attributes.items()}
    claim = (
        {"facts/claim": attributes["claim"], "verification/claim": attributes["claim"]} if "claim" in attributes else {}
    )
    digest = changed.attrs["sha256"]
    return texts.changed(
        said=told | claim | {"attrs/sha256": ["str", digest], "facts/provenance/seal of its contents": digest}
    )


def proved_in_node(folder: Path, texts: list[Texts], *, run: str = RUN) -> list[dict[str, Any]]:
    """The outcome of the proof of each page, or of the part of it that `run` is."""
    (folder / "texts.json").write_text(json.dumps([vars(given) for given in texts]))
    return in_node(folder, proof_script() + run)


def in_node(folder: Path, text: str) -> Any:
    """What a program prints as JSON."""
    (folder / "program.cjs").write_text(text)
    done = subprocess.run([str(NODE), "program.cjs"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)

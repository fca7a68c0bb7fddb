"""The proof of the page of a compact map, in Node: row sums, bounds and inequalities are the package's, and what was
changed is refused.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from compact_maps import with_digest
from pages import NODE, RUN, Texts, in_node, proof_script
from regions import MAPS, content, drawing, region

from mechdesign.errors import InputError
from mechdesign.mechanism.compact.certificate import above, breaches, least_bound, loose
from mechdesign.mechanism.compact.file import packed
from mechdesign.mechanism.compact.formulas import bounds
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.factored.row_sums import join_words
from mechdesign.output.page.page import page_text
from mechdesign.solvers.factored.sums import row_sums

POSITIONS = (
    "Protects any two positions: within {factor} m, one report changes anybody's odds by a factor of at most {factor}."
)
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
SUMS = """
const maps = JSON.parse(require("node:fs").readFileSync("maps.json", "utf8"));
(async () => {
  const found = {};
  for (const [name, text] of Object.entries(maps)) {
    const map = await regionClient.readRegion(Uint8Array.from(Buffer.from(text, "base64")));
    const region = new RegionSums(map);
    const cells = Array.from({ length: map.header.cells }, (_, u) => u);
    const sums = new Map(cells.map((u) => [u, region.rowSum(u)]));
    const edges = regionEdges(region, sums, []);
    let step;
    do step = edges.next(); while (!step.done);
    const bounds = cells.map((u) => String(region.boundOf(u)));
    found[name] = { sums: [...sums.values()].map(String), bounds, ...step.value };
  }
  console.log(JSON.stringify(found));
})();
"""


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the proof finds of every map."""
    folder = tmp_path_factory.mktemp("node")
    texts = {name: base64.b64encode(content(name)).decode() for name in [*MAPS, "certified"]}
    (folder / "maps.json").write_text(json.dumps(texts))
    found: dict[str, Any] = in_node(folder, proof_script("region") + SUMS)
    return found


@pytest.mark.parametrize("name", [*MAPS, "certified"])
def test_sums_bounds_and_breaches_are_those_of_the_package(sums, name) -> None:
    compact, found = region(name), sums[name]
    exact = [drawing(name).ball(secret).total for secret in range(compact.secrets)]
    assert list(map(int, found["sums"])) == exact
    assert list(map(int, found["bounds"])) == bounds(compact.bound, compact.potential.ravel()[compact.inner])
    assert found["edges"] == len(compact.edges.tail)
    assert found["broken"] == breaches(compact, exact)


def test_some_maps_break_their_claims(sums) -> None:
    assert sums["certified"]["broken"] == 0
    assert sum(each["broken"] > 0 for each in sums.values()) >= 4


@cache
def honest() -> Texts:
    """The texts of the page of a certified map."""
    return Texts.in_page(page_text(region("certified")))


def carrying(file: bytes, texts: Texts, **said: Any) -> Texts:
    """A page with another map, and checksums that fit it."""
    data = base64.b64encode(gzip.compress(file, 1, mtime=0)).decode()
    contents = json.loads(texts.contents)
    contents["arrays"]["compact"]["shape"] = [len(file)]
    contents["facts"]["provenance"]["seal of its contents"] = file[-32:].hex()
    contents["facts"]["provenance"]["sha256sum of the file"] = hashlib.sha256(file).hexdigest()
    return replace(texts, packed=data, contents=json.dumps(contents)).changed(said=said)


def with_header(**told: Any) -> bytes:
    """The certified map with a header that says something else, and a checksum that fits."""
    file = packed(region("certified"))
    size = int.from_bytes(file[12:16], "little")
    header = json.loads(file[16 : 16 + size])
    assert all(header[name] != value for name, value in told.items())
    text = json.dumps({**header, **told}, sort_keys=True).encode()
    return with_digest(file[:12] + len(text).to_bytes(4, "little") + text + file[16 + size : -32])


def bounded(**changes: Any) -> CompactMap:
    """The certified map with other numbers, and a bound that fits its sums."""
    changed = replace(region("certified"), **changes)
    least = least_bound(changed.potential.ravel()[changed.inner], join_words(row_sums(changed.factors)))
    return replace(changed, bound=least)


def forgeries() -> dict[str, tuple[Texts, str]]:
    """Pages that are not true, with every checksum made to fit, and what is said of them."""
    compact, texts = region("certified"), honest()
    header, least = compact.header(), region("certified").bound[0]
    other = bounded(step=2 * compact.grain)
    assert breaches(other, join_words(row_sums(other.factors))) > 0
    lower = replace(compact, bound=(1 << 30, compact.bound[1]))
    assert least > 1 << 30
    assert above(lower, join_words(row_sums(compact.factors))) > 0
    higher = replace(compact, bound=(compact.bound[0], compact.bound[1] + 2))
    assert loose(higher, join_words(row_sums(compact.factors))) > 0
    claim, template = header["claim"], json.loads(texts.contents)["saying"]["template"]

    def reworded(old: str, new: str) -> Texts:
        return texts.changed(said={"saying/template": template.replace(old, new)})

    level = compact.level.copy()
    level.flat[compact.inner[0]] += 1
    moved = bounded(level=level)
    return {
        "a step": (carrying(packed(other), texts), "not covered by the row sums"),
        "a bound": (carrying(packed(lower), texts), "more than its bound"),
        "a loose bound": (carrying(packed(higher), texts), "less than a quarter of its bound"),
        "a ratio": (carrying(with_header(ratio=str(int(header["ratio"]) + 1)), texts), "other steps"),
        "an advance": (carrying(with_header(advance=[a + 1 for a in header["advance"]]), texts), "length of its step"),
        "a name": (carrying(with_header(ledger="0" * 64), texts), "names other levels"),
        "a level": (carrying(packed(moved), texts), "claim"),
        "a claim of others": (carrying(with_header(claim=claim.replace("all 63", "all 64")), texts), "other cells"),
        "a larger claim": (carrying(with_header(claim=claim.replace(" to ", " to 9")), texts), "other levels"),
        "no claim": (carrying(with_header(claim="Nobody is hidden."), texts), "no sentence"),
        "the factor": (texts.changed(said={"saying/values/factor": 1.1, "saying/texts/factor": "1.1"}), "says factor"),
        "a shown factor": (texts.changed(said={"saying/texts/factor": "1.01"}), "shows factor"),
        "positions": (texts.changed(said={"saying/template": POSITIONS}), "what the claims are about"),
        "a radius": (reworded("however close", "within {factor} cells"), "what the claims are about"),
        "larger cells": (reworded("cells of 0.5 ", "cells of 0.9 "), "what the claims are about"),
        "more words": (reworded(" Levels fall", " Nobody is found. Levels fall"), "none that this page knows"),
        "a figure": (texts.changed(said={"saying/texts/most": "0.1"}), "shows most"),
        "the level": (texts.changed(said={"saying/values/least": 1e-3, "saying/texts/least": "0.001"}), "says least"),
        "the verdict": (texts.changed(said={"verification/certified": False}), "not certified"),
        "the sentence": (texts.changed(said={"facts/claim": "All is well."}), "claim"),
        "a checksum": (texts.changed(said={"facts/provenance/sha256sum of the file": "0" * 64}), "sha256sum"),
        "a seal": (texts.changed(said={"facts/provenance/seal of its contents": "0" * 64}), "seal"),
        "the seal": (replace(texts, seal="0" * 64), "checksum"),
        "a byte": (carrying(content("certified")[:-40] + b"x" + content("certified")[-39:], texts), "altered"),
    }  # fmt: skip


def test_an_honest_page_is_proved_and_forged_ones_are_refused(tmp_path) -> None:
    made = forgeries()
    texts = [honest(), *(forged for forged, _ in made.values())]
    (tmp_path / "texts.json").write_text(json.dumps([vars(given) for given in texts]))
    good, *found = in_node(tmp_path, proof_script("region") + RUN)
    assert good["faults"] == []
    assert good["found"]["rows"] == region("certified").secrets
    assert good["found"]["told"]["whole"] is True
    for (name, (_, word)), outcome in zip(made.items(), found, strict=True):
        assert any(word in fault["text"] for fault in outcome["faults"]), (name, outcome["faults"])


def test_a_large_map_is_proved_around_a_place(tmp_path) -> None:
    few = proof_script("region").replace("FEW_ROWS = 2500", "FEW_ROWS = 20").replace("PATCH = 15", "PATCH = 4")
    run = RUN.replace("texts, {}", "texts.texts, texts.options")
    asked = [{}, {"around": 0}, {"around": 62}, {"all": True}]
    (tmp_path / "texts.json").write_text(json.dumps([{"texts": vars(honest()), "options": each} for each in asked]))
    found = in_node(tmp_path, few + run)
    assert [outcome["faults"] for outcome in found] == [[]] * 4
    assert [outcome["found"]["rows"] for outcome in found] == [16, 16, 16, 63]
    assert [outcome["found"]["partial"] for outcome in found] == [True, True, True, False]
    assert found[3]["found"]["inequalities"] == 2 * len(region("certified").edges.tail)


def test_a_page_of_a_map_is_for_the_map_alone() -> None:
    with pytest.raises(InputError, match="not for a map"):
        page_text(region("certified"), comparison=[])

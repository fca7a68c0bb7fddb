"""The proof of the page of a device map, in Node: row sums, bounds and inequalities are the package's, and what was
changed is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from fixtures.device_maps import with_digest
from fixtures.pages import NODE, RUN, Texts, in_node, page_of, proof_script
from fixtures.random_columns import every_sum
from fixtures.random_device_maps import MAPS, content, drawing, region, with_row_bound
from fixtures.rows import few_by_default

from mechdesign.devicemap.device_map import bounds
from mechdesign.errors import InputError

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
SUMS = """
const maps = JSON.parse(require("node:fs").readFileSync("maps.json", "utf8"));
(async () => {
  const found = {};
  for (const [name, text] of Object.entries(maps)) {
    const map = await device.readRegion(Uint8Array.from(Buffer.from(text, "base64")));
    const region = new device.RegionRows(map.header, map.arrays);
    const cells = Array.from({ length: map.header.cells }, (_, u) => u);
    const sums = new Map(cells.map((u) => [u, region.rowSum(u)]));
    const edges = regionEdges(region, map.header.step, sums, []);
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
    """The outcome of the proof of every map."""
    folder = tmp_path_factory.mktemp("node")
    texts = {name: base64.b64encode(content(name)).decode() for name in [*MAPS, "certified"]}
    (folder / "maps.json").write_text(json.dumps(texts))
    found: dict[str, Any] = in_node(folder, proof_script() + SUMS)
    return found


@pytest.mark.parametrize("name", few_by_default([*MAPS, "certified"], "knights", "bare", "certified"))
@pytest.mark.obligation("map-page")
def test_sums_bounds_and_breaches_are_those_of_the_package(sums, name) -> None:
    compact, found = region(name), sums[name]
    exact = [drawing(name).row_order(secret).total for secret in range(compact.secrets)]
    assert list(map(int, found["sums"])) == exact
    assert list(map(int, found["bounds"])) == bounds(compact.bound, compact.potential.ravel()[compact.inner])
    assert found["edges"] == len(compact.edges.tail)
    assert found["broken"] == compact.factors.breaches(compact.edges, exact)


def test_some_maps_break_their_claims(sums) -> None:
    assert sums["certified"]["broken"] == 0
    assert sum(each["broken"] > 0 for each in sums.values()) >= 4


@cache
def honest() -> Texts:
    """The texts of the page of a certified map."""
    return Texts.in_page(page_of(region("certified")))


def carrying(file: bytes, texts: Texts, **said: Any) -> Texts:
    """A page with another map, and the checksum that fits it."""
    contents = json.loads(texts.contents)
    contents["arrays"]["compact"]["shape"] = [len(file)]
    contents["facts"]["provenance"]["sha256sum of the file"] = hashlib.sha256(file).hexdigest()
    return Texts.of(json.dumps(contents), file).changed(said=said)


def with_header(**told: Any) -> bytes:
    """The certified map with a header that says something else, and a checksum that fits."""
    file = content("certified")
    size = int.from_bytes(file[12:16], "little")
    header = json.loads(file[16 : 16 + size])
    assert all(header[name] != value for name, value in told.items())
    text = json.dumps({**header, **told}).encode()
    return with_digest(file[:12] + len(text).to_bytes(4, "little") + text + file[16 + size : -32])


def forgeries() -> dict[str, tuple[Texts, str]]:
    """Pages that are not true, with every checksum made to fit, and what is said of them."""
    compact, texts = region("certified"), honest()
    header, least = compact.header(), region("certified").bound[0]
    other = replace(compact, step=2 * compact.grain)
    other = with_row_bound(other, every_sum(other.factors))
    assert other.factors.breaches(other.edges, every_sum(other.factors)) > 0
    lower = replace(compact, bound=(1 << 30, compact.bound[1]))
    assert least > 1 << 30
    assert lower.bound_violations(every_sum(compact.factors))[0] > 0
    higher = replace(compact, bound=(compact.bound[0], compact.bound[1] + 2))
    assert higher.bound_violations(every_sum(compact.factors))[1] > 0
    return {
        "a step": (carrying(content(other), texts), "not covered by the row sums"),
        "a bound": (carrying(content(lower), texts), "more than its bound"),
        "a loose bound": (carrying(content(higher), texts), "less than a quarter of its bound"),
        "a ratio": (carrying(with_header(ratio=str(int(header["ratio"]) + 1)), texts), "does not match the step"),
        "a length scale": (
            carrying(with_header(length_scales=[a + 1 for a in header["length_scales"]]), texts), "length of its step"
        ),
        "a name": (carrying(with_header(claim_digest="0" * 64), texts), "checksum of the levels in the claim"),
        "other levels": (carrying(with_header(level_unit=2 * header["level_unit"]), texts), "length of its step"),
        "another unit": (carrying(with_header(unit="ft"), texts), "checksum of the levels in the claim does not match"),
        "the factor": (texts.changed(said={"protection/factor": 1.1}), "states factor"),
        "the verdict": (texts.changed(said={"verification/certified": False}), "not certified"),
        "a checksum": (texts.changed(said={"facts/provenance/sha256sum of the file": "0" * 64}), "sha256sum"),
        "a byte": (carrying(content("certified")[:-40] + b"x" + content("certified")[-39:], texts), "altered"),
    }  # fmt: skip


@pytest.mark.obligation("map-page")
def test_an_honest_page_is_proved_and_forged_ones_are_refused(tmp_path) -> None:
    made = forgeries()
    texts = [honest(), *(forged for forged, _ in made.values())]
    (tmp_path / "texts.json").write_text(json.dumps([vars(given) for given in texts]))
    good, *found = in_node(tmp_path, proof_script() + RUN)
    assert good["faults"] == []
    assert good["figures"]["rows"] == region("certified").secrets
    assert good["figures"]["badge"]["whole"] is True
    for (name, (_, word)), outcome in zip(made.items(), found, strict=True):
        assert any(word in fault["text"] for fault in outcome["faults"]), (name, outcome["faults"])


@pytest.mark.obligation("map-page")
def test_a_large_map_is_proved_around_a_place(tmp_path) -> None:
    few = proof_script().replace("FEW_ROWS = 2500", "FEW_ROWS = 20").replace("PATCH = 15", "PATCH = 4")
    run = RUN.replace("texts.packed, {}", "texts.texts.packed, texts.options")
    asked = [{}, {"around": 0}, {"around": 62}, {"all": True}]
    (tmp_path / "texts.json").write_text(json.dumps([{"texts": vars(honest()), "options": each} for each in asked]))
    found = in_node(tmp_path, few + run)
    assert [outcome["faults"] for outcome in found] == [[]] * 4
    assert [outcome["figures"]["rows"] for outcome in found] == [16, 16, 16, 63]
    assert [outcome["figures"]["partial"] for outcome in found] == [True, True, True, False]
    assert found[3]["figures"]["inequalities"] == 2 * len(region("certified").edges.tail)


def test_a_page_of_a_map_is_for_the_map_alone() -> None:
    with pytest.raises(InputError, match="is for mechanisms"):
        page_of(region("certified"), comparison=[])


@pytest.mark.obligation("map-page")
def test_the_sentences_of_a_map_are_those_of_python(tmp_path) -> None:
    texts = honest()
    (tmp_path / "texts.json").write_text(json.dumps(vars(texts)))
    run = """
    openPage(JSON.parse(require("node:fs").readFileSync("texts.json", "utf8")).packed).then((page) =>
      console.log(JSON.stringify([regionHeadline(page), regionClaimWords(page)])));
    """
    said, claim = in_node(tmp_path, proof_script() + run)
    facts = json.loads(texts.contents)["facts"]
    assert said == facts["sentence"]
    assert claim.split(" (")[0] == facts["claim"].split(" (")[0]
    assert claim.split("; levels ")[1] == facts["claim"].split("; levels ")[1]

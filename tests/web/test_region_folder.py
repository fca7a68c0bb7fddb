"""`mechdesign client` of a device map: verified first, the whole map in it, and a README that says how to draw."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixtures.clients import NODE, run
from fixtures.random_device_maps import content, flat, region

import mechdesign as md
from mechdesign.devicemap import load_device_map
from mechdesign.devicemap.web import arena_bytes
from mechdesign.web import client as folders
from mechdesign.web import write_client

OWN = folders.NAMES - {"index.html"}
DRAWN = """
import { fileStorage, openClient } from "./web/report.mjs";
const client = await openClient({ storage: fileStorage("memory.json"), answerAfter: 1 });
console.log(JSON.stringify([await client.reportCell(5), await client.reportCell(5), client.claim]));
"""


def test_client_command_names_the_next_step(tmp_path, run_json, request) -> None:
    file = tmp_path / "region.compact"
    file.write_bytes(content("certified"))
    code, told = run_json("export", file, "-o", tmp_path / "web")
    assert code == 0
    assert set(told["bytes"]) == OWN == {path.name for path in (tmp_path / "web").iterdir()}
    assert (tmp_path / "web" / "report.bin").read_bytes() == file.read_bytes()
    assert (tmp_path / "web" / "region.map").read_bytes() == flat("certified")
    code, _, err = request.getfixturevalue("run")("export", file, "-o", tmp_path / "web", "--overwrite")
    assert code == 0
    assert "README.md says how to begin" in err


def test_its_readme_has_the_claim_and_the_sizes(tmp_path) -> None:
    compact = region("certified")
    said = (write_client(compact, tmp_path / "web") / "README.md").read_text()
    assert f"> {compact.claim}\n" in said
    assert f"{arena_bytes(compact) / 1e3:.1f} kB of working memory" in said
    assert "$" not in said
    texts = [(tmp_path / "web" / name).read_text() for name in OWN - {"report.bin", "region.map"}]
    assert not any("http://" in text or "https://" in text for text in texts)
    assert "80 places around the cells" in said


def test_a_map_that_does_not_verify_is_refused(tmp_path) -> None:
    compact = replace(region("certified"), step=region("certified").grain * 2)
    with pytest.raises(md.errors.VerificationError, match="break the claim"):
        write_client(compact, tmp_path / "web")
    changed = bytearray(content("certified"))
    changed[-40] ^= 1
    (tmp_path / "changed.compact").write_bytes(changed)
    with pytest.raises(md.errors.VerificationError, match="checksum"):
        write_client(load_device_map(tmp_path / "changed.compact"), tmp_path / "web")
    assert [path.name for path in tmp_path.iterdir()] == ["changed.compact"]


@pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
def test_its_folder_draws_in_node(tmp_path) -> None:
    folder = write_client(region("certified"), tmp_path / "web")
    first, again, claim = run(folder, DRAWN)
    assert first["remembered"] is False
    assert again["remembered"] is True
    assert first["report"] == again["report"]
    assert {"longitude", "latitude", "x", "y", "number", "unit"} == set(first["report"])
    assert claim == region("certified").claim

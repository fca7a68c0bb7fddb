"""Pages in a browser, from file:// and without a network: what they show, what they prove, and what they refuse."""

from __future__ import annotations

import json
import random
import re
import zlib
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from fixtures.browsers import Opened, check_layout, needs_browser
from fixtures.forged_files import rewritten
from fixtures.pages import Texts, forge_page, honest, mechanism_of, page_of
from fixtures.position_mechanisms import LAND, position_mechanism, spline_weights
from fixtures.random_device_maps import chances, region
from fixtures.rows import few_by_default
from fixtures.tight_limits import limit_program

import mechdesign as md
from mechdesign.web import save_page

pytestmark = needs_browser()
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>{{ 7 * 7 }}<!--"
FORGED = """async (texts) => {
  await runProof(await openPage(texts.packed).catch(() => ({ contents: {} })), texts.packed, null, {});
  return [document.getElementById("proof").className, document.getElementById("saying").textContent];
}"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, hostile_file):
    """Pages of every kind, each made once: cells, streets, factors, 225 cells, answers, a sweep, a comparison."""
    place = tmp_path_factory.mktemp("pages")
    problem = md.load_problem("euclidean", cells=3)
    made = {
        "region": lambda: region("certified"),
        "225": lambda: md.solve(md.EikonalWeights(md.load_problem("flat", cells=15))),
        "income": lambda: md.solve(md.load_problem("income", cells=12, outputs=9)),
        "sweep": lambda: md.sweep(problem, [0.5, 1.0, 2.0]),
        "compare": lambda: md.solve(problem),
        "hostile": lambda: md.load(hostile_file),
    }

    def page(name):
        file, compared = place / f"{name}.html", None
        if not file.exists():
            mechanism = made[name]() if name in made else mechanism_of(name)
            if name == "compare":
                table = md.compare(problem).query("mechanism in ['optimal', 'geometric_normalised']").astype(object)
                compared = table.where(table.notna(), None).to_dict("records")
            save_page(mechanism, file, comparison=compared)
        return file

    return page


@pytest.fixture(scope="module")
def shared_page(page_file, browser):
    """Pages of several tests, each opened once. A test that changes its page leaves the state that others need."""
    kept = {}

    def call(name):
        if name not in kept:
            kept[name] = Opened(browser, page_file(name))
        return kept[name]

    yield call
    for one in kept.values():
        one.context.close()


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory):
    """A file of nine cells whose name is a program."""
    return md.save(rewritten(mechanism_of("plane"), problem=HOSTILE), tmp_path_factory.mktemp("hostile") / "m.nc")


PAGES = ["plane", "park", "roads", "line", "225", "income", "factored", "compare", "sweep", "any position", "region"]


@pytest.mark.parametrize("name", few_by_default(PAGES, "factored"))
def test_every_page_proves_itself_and_asks_for_nothing(shared_page, name):
    shown = shared_page(name)
    wanted = "partly" if name == "sweep" else "proved"
    assert wanted in shown.page.get_attribute("#proof", "class"), shown.page.inner_text("#proof")
    assert shown.asked_for() == shown.complaints == []
    assert len([url for url in shown.requests if url.startswith("file:")]) == 1
    assert shown.page.inner_text("#sentence").endswith(".")


@pytest.mark.study
def test_900_cells_are_proved(tmp_path, open_page):
    save_page(md.solve(md.EikonalWeights(md.load_problem("flat", cells=30)), method="table"), tmp_path / "p.html")
    shown = open_page(tmp_path / "p.html")
    assert shown.page.inner_text("#saying") == "900 rows, 6,159,600 inequalities, in integers."
    assert "proved" in shown.page.get_attribute("#proof", "class")


def test_figures_are_those_of_verify(hostile_file, shared_page, run_json):
    _, verified = run_json("verify", hostile_file)
    shown = shared_page("hostile").page
    for name in ("expected_loss", "ratio", "violations", "lower_bound_checked", "rebuilt"):
        said = shown.text_content(f'[data-figure="{name}"]')  # behind its details
        assert said == (verified[name] if isinstance(verified[name], str) else json.dumps(verified[name]))
    said = shown.text_content('[data-fact="claim"]')
    assert said.split(" (")[0] == verified["claim"].split(" (")[0]
    assert shown.text_content('[data-provenance="sha256sum of the file"]') == verified["sha256"]


def with_damage(texts: Texts, at: int) -> Texts | None:
    """A page of which one character differs; None where it says the same: gzip has bits that mean nothing."""
    other = replace(
        texts, packed=texts.packed[:at] + ("B" if texts.packed[at] == "A" else "A") + texts.packed[at + 1 :]
    )
    try:
        same = other.contents == texts.contents and other.arrays == texts.arrays
    except (ValueError, EOFError, OSError, zlib.error):
        same = False
    return None if same else other


def forgeries(many):
    """Pages of which one sign, mass, length or figure was changed."""
    texts, rng = honest("plane"), random.Random(8)
    mass = mechanism_of("plane")["mass"].values
    places = iter(rng.sample(range(len(texts.packed)), len(texts.packed)))
    yield from islice((other for at in places if (other := with_damage(texts, at)) is not None), 5 * many)
    for _ in range(3 * many):
        changed = mass.copy()
        changed.flat[rng.randrange(mass.size)] += np.uint64(10 ** rng.randrange(17))
        yield forge_page("plane", mass=changed)
    for edge in rng.sample(range(mechanism_of("plane").sizes["edge"]), many):
        length = mechanism_of("plane")["edge_length"].values.copy()
        length[edge] *= 1 + 2.0 ** -rng.randrange(20)
        yield forge_page("plane", edge_length=length)
    yield texts.changed(said={"position_loss": 0.5})
    for name in ("factor", "within"):
        yield texts.changed(said={f"protection/{name}": 1.0001})
    for name, value in (("expected_loss", 0.5), ("violations", 3)):
        yield texts.changed(said={f"verification/{name}": value})


@pytest.mark.parametrize("many", [1, pytest.param(5, marks=pytest.mark.exhaustive)])
@pytest.mark.obligation("page-proof")
def test_every_forgery_is_refused(shared_page, many):
    page = shared_page("hostile").page
    made_up = list(forgeries(many))
    assert len(made_up) == 9 * many + 5
    for number, texts in enumerate(made_up):
        kind, said = page.evaluate(FORGED, vars(texts))
        assert kind == "badge refused", (number, said)
        assert said
    kind, said = page.evaluate(FORGED, vars(honest("plane")))
    assert kind == "badge proved", said


@pytest.mark.exhaustive
def test_a_forged_file_turns_red_and_shows_the_place(tmp_path, open_page):
    html = page_of(mechanism_of("plane"))
    texts, mass = Texts.in_page(html), mechanism_of("plane")["mass"].values.copy()
    mass[7, 2] -= np.uint64(1)
    other = forge_page("plane", mass=mass)
    html = html.replace(texts.packed, other.packed)
    (tmp_path / "p.html").write_text(html)
    page = open_page(tmp_path / "p.html").page
    assert "refused" in page.get_attribute("#proof", "class")
    assert page.locator("#faults li").count() >= 1
    assert any("secret 7: the masses sum to" in text for text in page.locator("#faults li").all_inner_texts())


@pytest.mark.exhaustive
def test_without_workers_the_page_proves_in_its_own_thread(page_file, browser):
    context = browser.new_context(offline=True)
    context.add_init_script("window.Worker = undefined")
    page = context.new_page()
    page.goto(page_file("plane").as_uri())
    page.wait_for_selector(".badge:not(.waiting)")
    found = page.evaluate("typeof Worker"), page.get_attribute("#proof", "class")
    context.close()
    assert found == ("undefined", "badge proved")


def test_hostile_names_stay_texts(shared_page):
    shown = shared_page("hostile")
    assert shown.page.evaluate("window.hacked") is None
    assert shown.page.inner_text('[data-fact="name"]') == HOSTILE
    assert "proved" in shown.page.get_attribute("#proof", "class")
    assert shown.complaints == []


def test_clicks_keys_and_draws(shared_page):
    page = shared_page("hostile").page
    box = page.locator("#map").bounding_box()
    title = page.inner_text("#place-title")
    side = box["height"] / 3  # of a cell; the map keeps to the left of a wide canvas
    page.mouse.click(box["x"] + 1.5 * side, box["y"] + side / 2)
    clicked = page.inner_text("#place-title")
    assert clicked != title
    page.focus("#map")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#place-title") == title
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#place-title") not in (title, clicked)
    assert page.is_hidden("#report-box")
    page.keyboard.press("Enter")
    assert page.is_visible("#report-box")
    assert "belief after" in page.inner_text("#report")
    assert page.get_attribute("#tabs button:last-child", "aria-pressed") == "true"
    page.click("#tabs button >> text=Expected loss")
    assert "expected loss" in page.inner_text("#legend")


@pytest.mark.exhaustive
def test_worst_report_and_disc_are_drawn_after_proof(tmp_path, open_page):
    save_page(md.solve(limit_program()), tmp_path / "capped.html")
    page = open_page(tmp_path / "capped.html").page
    page.click("#tabs button >> text=After the worst report")
    assert page.inner_text("#legend .words").endswith("60 % in the disc that is outlined")  # the limit, which binds
    drawn = page.evaluate("() => document.getElementById('map').toDataURL()")
    page.click("#tabs button >> text=Reports from here")
    assert page.evaluate("() => document.getElementById('map').toDataURL()") != drawn


@pytest.mark.exhaustive
def test_a_click_is_a_position_that_reports_are_drawn_for(page_file, open_page):
    """Row, belief and 2,000 draws of a point of a cell: those of the spline, by exact weights and by `Sampler`."""
    mechanism, (cell, point) = mechanism_of("any position"), (2, (9000, -20000))
    shown = open_page(page_file("any position"))
    page = shown.page
    box = page.locator("#map").bounding_box()
    side = box["height"] / 3
    page.mouse.click(box["x"] + side * 1.3, box["y"] + side * 1.4)
    assert "left" in page.inner_text("#place") or "right" in page.inner_text("#place")
    page.keyboard.press("Enter")
    page.click("#draw")
    assert "off by" in page.inner_text("#report")
    assert shown.complaints == []
    found = page.evaluate(
        """async ([cell, point]) => {
      const packed = document.getElementById("data").textContent;
      const model = new Model(await openPage(packed));
      const counts = new Array(model.width).fill(0);
      for (let k = 0; k < 2000; k++) counts[model.draw(cell, point)]++;
      const again = model.pointIn(cell, model.coordinates(cell, point));
      return [model.row(cell, point), model.posterior(3), counts, again].map((values) => Array.from(values));
    }""",
        [cell, list(point)],
    )
    around = mechanism["around_row"].values
    table = mechanism["mass"].values.astype(float) / 2.0**62
    across, upward = spline_weights(point)
    row = np.outer(across, upward).ravel() @ table[around[cell]]
    assert found[0] == pytest.approx(row, rel=1e-12)  # sums of a few products
    third = np.array([1, 4, 1]) / 6
    belief = mechanism["prior"].values * (table[around, 3] @ np.outer(third, third).ravel())
    assert found[1] == pytest.approx(belief / belief.sum(), rel=1e-12)
    assert (np.abs(np.array(found[2]) - 2000 * row) <= 6 * np.sqrt(2000 * row) + 1).all()
    assert found[3] == list(point)


@pytest.mark.exhaustive
def test_reports_on_land_are_cells_of_the_map(tmp_path, open_page):
    save_page(position_mechanism("land"), tmp_path / "land.html")
    shown = open_page(tmp_path / "land.html")
    page = shown.page
    assert "proved" in page.get_attribute("#proof", "class"), page.inner_text("#proof")
    assert page.inner_text("#tabs").startswith("Expected loss")
    assert "Reports from here" in page.inner_text("#tabs")
    spread, cells = page.evaluate("""async () => {
      const packed = document.getElementById("data").textContent;
      const model = new Model(await openPage(packed));
      return [Array.from(model.spread(model.row(5)), (p) => (p >= 0 ? p : -1)), Array.from(model.cellOf)];
    }""")
    assert cells == np.flatnonzero(LAND.ravel()).tolist()
    assert [k for k, p in enumerate(spread) if p >= 0] == cells
    assert sum(p for p in spread if p >= 0) == pytest.approx(1)
    page.click("#draw")
    assert "off by" in page.inner_text("#report")
    page.mouse.click(*[page.locator("#map").bounding_box()[axis] + 150 for axis in ("x", "y")])
    assert shown.complaints == []


def test_a_click_anywhere_answers(shared_page):
    """Of cells with a hole a click in the hole names the nearest cell and says so; sentences have the figures."""
    page = shared_page("holes").page
    seen = page.evaluate("""async () => {
      const canvas = document.getElementById("map");
      const box = canvas.getBoundingClientRect();
      const seen = [];
      for (let i = 1; i < 12; i++) {
        for (let j = 1; j < 12; j++) {
          const at = { clientX: box.left + (box.width * i) / 12, clientY: box.top + (box.height * j) / 12 };
          canvas.dispatchEvent(new MouseEvent("click", at));
          const text = (id) => document.getElementById(id).textContent;
          seen.push([document.getElementById("outside").hidden, text("place-title"), text("place-words")]);
        }
      }
      return seen;
    }""")
    assert {hidden for hidden, _, _ in seen} == {True, False}
    assert len({title for _, title, _ in seen}) > 5
    page.click("#draw")
    words = page.inner_text("#report-words")
    assert words.startswith("Whoever knows the prior gives your ")
    shown = page.inner_text("#explore") + words + "".join(said for _, _, said in seen)
    shares = [float(found.replace(",", "")) for found in re.findall(r"([0-9,.]+)[ \xa0]%", shown)]
    assert len(shares) > 3
    assert max(shares) <= 100


@pytest.mark.exhaustive
def test_draws_follow_the_masses(page_file, open_page):
    """2,000 draws from the browser's random source: every report within six standard deviations."""
    page = open_page(page_file("plane")).page
    counts = page.evaluate("""async () => {
      const packed = document.getElementById("data").textContent;
      const model = new Model(await openPage(packed));
      const counts = new Array(model.width).fill(0);
      for (let k = 0; k < 2000; k++) counts[model.draw(4)]++;
      return counts;
    }""")
    wanted = md.probabilities(mechanism_of("plane")).values[4]
    assert sum(counts) == 2000
    assert (np.abs(counts - 2000 * wanted) <= 6 * np.sqrt(2000 * wanted) + 1).all()


@pytest.mark.parametrize("name", few_by_default(["plane", "factored", "factored, columns"], "factored"))
def test_rows_beliefs_and_distances_are_those_of_python(shared_page, name):
    page, mechanism = shared_page(name).page, mechanism_of(name)
    found = page.evaluate("""async () => {
      const packed = document.getElementById("data").textContent;
      const model = new Model(await openPage(packed));
      return [model.row(1), model.posterior(2), model.nats(3)].map((values) => Array.from(values));
    }""")
    sampler = md.Sampler(mechanism)
    whole = sampler.rows.probabilities(np.arange(mechanism.sizes["secret"]))
    belief = mechanism["prior"].values * whole[:, 2]
    claim = sampler.certificate
    wanted = [whole[1], belief / belief.sum(), claim.metric.distances(claim.domain)[3]]
    for values, right in zip(found, wanted, strict=True):
        assert values == pytest.approx(right, rel=1e-12, abs=1e-300)  # sums of a few products


def test_a_region_is_chosen_drawn_from_and_proved_around_a_place(page_file, open_page):
    """Clicks in either view, keys, a report, the row that is shown, and the proof around another place."""
    shown = open_page(page_file("region"))
    page = shown.page
    first = page.inner_text("#place-title")
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + 4, box["y"] + 4)
    corner = page.inner_text("#place-title")
    assert corner != first
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#place-title") != corner
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#place-title") == corner
    assert page.is_hidden("#report-box")
    page.keyboard.press("Enter")
    assert "off by" in page.inner_text("#report")
    assert page.get_attribute("#tabs button:last-child", "aria-pressed") == "true"
    page.click("#here")
    page.wait_for_selector(".badge:not(.waiting)")
    assert page.inner_text("#saying").startswith("63 rows, ")
    row, error, radius = page.evaluate("""async () => {
      const packed = document.getElementById("data").textContent;
      const view = new RegionView(await openPage(packed));
      view.choose(20);
      return [Array.from(view.row), view.error, view.radius];
    }""")
    wanted, points = chances("certified", 20), region("certified").domain.points
    away = np.linalg.norm(points - points[20], axis=1)
    order = np.argsort(away, kind="stable")
    assert row == pytest.approx(wanted, rel=1e-12)  # sums of a few products
    assert error == pytest.approx(wanted @ away, rel=1e-12)
    assert radius == pytest.approx(away[order][np.searchsorted(np.cumsum(wanted[order]), 0.95)], rel=1e-12)
    assert shown.complaints == shown.asked_for() == []


@pytest.mark.exhaustive
def test_the_slider_of_odds_tells_its_reach(page_file, open_page):
    page = open_page(page_file("park")).page
    page.evaluate("""() => {
      const factor = document.getElementById("factor");
      factor.value = factor.max;
      factor.dispatchEvent(new Event("input"));
    }""")
    assert "8 other cells by no more" in page.inner_text("#reach")


def test_a_sweep_is_a_picture_and_a_table(page_file, open_page):
    page = open_page(page_file("sweep")).page
    assert page.locator("table tbody tr").count() == 3
    assert "not private at that scale" in page.inner_text("section")
    assert page.evaluate("document.querySelector('img.picture').naturalWidth") > 600


@pytest.mark.exhaustive
def test_a_comparison_marks_broken_claims(page_file, open_page):
    page = open_page(page_file("compare")).page
    kept, broken = page.locator("#compared tbody tr").all_inner_texts()
    assert "as claimed" in kept
    assert "breaks its claim" in broken


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("holes", 390, "dark"),
        *(
            pytest.param(*page, marks=pytest.mark.exhaustive)
            for page in (
                ("park", 390, "dark"),
                ("park", 1280, "light"),
                ("income", 390, "light"),
                ("sweep", 390, "dark"),
                ("compare", 1280, "dark"),
                ("region", 390, "dark"),
                ("region", 1280, "light"),
            )
        ),
    ],
)
def test_pages_fit_phones_and_are_accessible(shared_page, name, width, scheme):
    page = shared_page(name).page
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    check_layout(page, width, scheme)
    page.set_viewport_size({"width": 1280, "height": 720})


STILL = """
  window.ResizeObserver = class { observe() {} }; // paper is laid out without it
  window.Worker = class { postMessage() {} terminate() {} }; // a proof that does not end
"""


@pytest.mark.exhaustive
def test_print_has_map_colours_and_proof(page_file, browser):
    """Paper is narrower than the screen, and the height must follow; a proof that runs is made before printing."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 844}, color_scheme="dark")
    context.add_init_script(STILL)
    page = context.new_page()
    page.goto(page_file("225").as_uri())
    page.wait_for_selector("#tabs button")
    assert page.inner_text("#verdict") == "Proving"
    assert page.inner_text("#saying") == "reading the numbers"
    page.set_viewport_size({"width": 640, "height": 844})
    page.emulate_media(media="print")
    box = page.locator("#map").bounding_box()
    drawn = page.evaluate("(({ width, height }) => width / height)(document.getElementById('map'))")
    assert box["width"] / box["height"] == pytest.approx(drawn, rel=0.01)
    colours = page.evaluate("getComputedStyle(document.querySelector('.ramp')).printColorAdjust")
    assert colours == "exact"
    assert page.is_hidden("#progress") is True
    page.emulate_media(media="screen")
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.get_attribute("#proof", "class") == "badge proved"
    assert page.locator("#proved li").count() > 3
    assert not page.evaluate("document.documentElement.classList.contains('paper')")
    context.close()


def test_without_scripts_a_table_is_there(page_file, browser):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file("hostile").as_uri())
    assert page.locator("noscript table tbody tr").count() == 9 or page.locator("table tbody tr").count() == 9
    assert "Nothing was proved" in page.inner_text("body")
    assert page.inner_text("#sentence").startswith("Protects cells, not positions")
    context.close()

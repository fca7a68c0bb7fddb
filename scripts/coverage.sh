#!/usr/bin/env bash
# Branch coverage of the modules that prove, store and draw, by their tests. Needs the package coverage, which is in no
# extra. Missed lines are printed; build/coverage.json has all. Compiled functions are excluded: tests compare them with
# plain integers, and scripts/mutants.py changes them. Known misses: guards that no table has needed (no scale holds in
# `certified_scale`, an `envelope` that does not converge, a second slack of `_to_integers`); sweeps, and programs of
# extensions without a check, which tests/output/test_sweep.py and tests/test_outside.py cover. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
export COVERAGE_FILE=build/.coverage
python -m coverage run -m pytest -q -p no:xdist tests/mechanism tests/verification tests/output/test_verify_table.py \
    tests/output/test_forged_tables.py tests/output/test_verifier_fuzz.py tests/posteriors/test_capped_files.py \
    tests/positions/test_verify_positions.py tests/positions/test_positions.py tests/positions/test_position_claims.py \
    tests/posteriors/test_posterior.py tests/programs/test_constraints.py tests/blurs/test_disc_audit.py \
    tests/sessions/test_budget.py tests/test_every_failure.py "$@"
python -m coverage json --quiet -o build/coverage.json
python -m coverage report --show-missing --precision 1

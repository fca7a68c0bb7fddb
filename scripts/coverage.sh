#!/usr/bin/env bash
# Branch coverage of what proves, stores and draws, by the tests that are about it; needs coverage, of no extra. What is
# missing is listed by line; build/coverage.json has it all. Compiled functions are left out: they are compared with
# plain integers, and scripts/mutants.py changes them. What is missed is known: that no scale holds in `certified_scale`,
# an `envelope` that does not settle and a second slack of `_to_integers` are guards that no table has needed; sweeps,
# which `save` writes too, and programs of extensions without a check have tests of their own, tests/output/test_sweep.py
# and tests/test_outside.py. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
export COVERAGE_FILE=build/.coverage
python -m coverage run -m pytest -q -p no:xdist tests/mechanism tests/verification tests/output/test_verify_table.py \
    tests/output/test_forged_tables.py tests/output/test_verifier_fuzz.py tests/posteriors/test_capped_files.py \
    tests/positions/test_verify_positions.py tests/positions/test_positions.py tests/positions/test_position_claims.py \
    tests/posteriors/test_posterior.py tests/programs/test_constraints.py tests/geo/test_disc_audit.py \
    tests/sessions/test_budget.py tests/test_every_failure.py "$@"
python -m coverage json --quiet -o build/coverage.json
python -m coverage report --show-missing --precision 1

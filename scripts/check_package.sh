#!/usr/bin/env bash
# Build wheel and sdist, and check contents, metadata and the first commands in an empty environment outside the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/build"
bin="$folder/build/bin"
[ -d "$bin" ] || bin="$folder/build/Scripts" # Windows
"$bin/python" -m pip install --quiet build twine check-wheel-contents
rm -rf dist
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # as scripts/verify_release.sh builds
export SOURCE_DATE_EPOCH
"$bin/python" -m build --outdir dist . > "$folder/log" || { cat "$folder/log"; exit 1; }
"$bin/python" -m twine check --strict dist/*
"$bin/check-wheel-contents" --ignore W002,W009 dist/*.whl # copies of a file, and no second package
"$bin/python" scripts/package_contents.py dist/*.whl dist/*.tar.gz
for kind in whl tar.gz; do
    python3 -m venv "$folder/$kind"
    bin="$folder/$kind/bin"
    [ -d "$bin" ] || bin="$folder/$kind/Scripts"
    "$bin/python" -m pip install --quiet dist/*."$kind"
    (
        cd "$folder"
        "$bin/mechdesign" solve --help
        "$bin/mechdesign" solve philadelphia --cells 10 -o "$kind.nc"
        "$bin/mechdesign" verify "$kind.nc"
        "$bin/mechdesign" export "$kind.nc" -o "$kind.csv" --with-verifier --overwrite
        "$bin/python" verify_table.py "$kind.csv"
        rm verify_table.py
    )
done
echo "wheel and sdist are good"

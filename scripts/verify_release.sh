#!/usr/bin/env bash
# Verify a release: build wheel and sdist twice from a clean clone, compare them bit by bit, and with the files of a folder
# if one is given. build/sbom.json lists the packages that an installation of the wheel brings.
#     scripts/verify_release.sh [COMMIT [FOLDER]]
# The second build has another folder, umask, time zone and language. HATCHLING=1.33.0 selects that version of hatchling,
# which is recorded in the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")
released=${2:+$(cd "$2" && pwd)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/build"
python="$folder/build/bin/python"
"$python" -m pip install --quiet build cyclonedx-bom "hatchling${HATCHLING:+==$HATCHLING}"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH

build() { # into the folder named
    git clone --quiet . "$folder/$1"
    git -C "$folder/$1" checkout --quiet --detach "$commit"
    "$python" -m build --no-isolation --outdir "$folder/$1/dist" "$folder/$1" > "$folder/log" || { cat "$folder/log"; exit 1; }
    (cd "$folder/$1/dist" && sha256sum -- *) > "$folder/$1.sums"
}
build first
(umask 077 && TZ=Pacific/Auckland LC_ALL=C build "second, elsewhere")
cat "$folder/first.sums"
cmp "$folder/first.sums" "$folder/second, elsewhere.sums"
echo "two builds of $commit are bit-identical ($("$python" -m pip list | grep hatchling))"
if [ -n "$released" ]; then
    (cd "$released" && sha256sum --check --strict "$folder/first.sums")
    echo "the files in $released are those of $commit"
fi
mkdir -p build
python3 -m venv "$folder/installed"
"$folder/installed/bin/python" -m pip install --quiet "$folder"/first/dist/*.whl
"$folder/build/bin/cyclonedx-py" environment --output-reproducible --of JSON -o build/sbom.json "$folder/installed"
echo "build/sbom.json lists the packages that the wheel brings"

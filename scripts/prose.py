"""Count patterns of unclear prose, in code, messages, pages and tests; fail if one occurs more often than its ceiling.

    python scripts/prose.py                              counts, and ceilings
    python scripts/prose.py --under mechdesign/geo       counts of one folder or file
    python scripts/prose.py --places "of no"             where a pattern occurs

Passages are docstrings, comments, messages (strings of three words or more that are not programs) and the text of
pages. A ceiling only falls: lower it when the count is lower. The last lines count full-line comments of the package
and the length of test names; they have no ceiling. Rules and examples are in docs/writing.md.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("mechdesign", "scripts", "benchmarks", "docs", "tests", "README.md", "SECURITY.md", "CONTRIBUTING.md")
SAMPLES = ("scripts/prose.py", "tests/test_prose.py", "docs/writing.md")  # they quote what they warn of
LONGEST_SENTENCE = 30  # words
LONGEST_TEST_NAME = 60  # characters

CEILINGS = {
    "docstring begins with What or Whether": 0,
    "what as a relative": 50,
    "is no": 2,
    "is none": 0,
    "that is none": 0,
    "of no": 0,
    "which is said": 0,
    "is told": 1,
    "stands beside": 0,
    "goes on": 0,
    "to be had": 0,
    "long sentence": 49,
    "participle as a function name": 4,
    "long test name": 0,
}

PHRASES = {  # matched in any passage; a space also matches the end of a line
    "docstring begins with What or Whether": r"\A(What|Whether)\b(?![^.]*\?)",
    "what as a relative": r"\bwhat\b(?![^.!?;:]*\?)",
    "is no": r"(?<!there\s)\b(is|are|was|were|be|been|being) no (?!longer\b|more\b|less\b|fewer\b|larger\b|smaller\b)",
    "is none": r"(?-i:(?<!there\s)(?<!that\s)(?<!which\s)\b(is|are|was|were|be|been|being) none\b)",
    "that is none": r"\b(that|which) (is|are|was|were) none\b",
    "of no": r"\bof no (?!more\b|less\b)",
    "which is said": r"\b(which|as it|as they) (is|are|was|were) (said|told)\b",
    "is told": r"(?<!which\s)(?<!as\sit\s)(?<!as\sthey\s)\b(is|are|was|were|be|been|being) told\b",
    "stands beside": r"\b(stand|stands|stood|standing) beside\b",
    "goes on": r"\b(go|goes|went|gone|going) on\b",
    "to be had": r"\bbe had\b",
}
ONLY = {"docstring begins with What or Whether": "docstring"}  # patterns of one kind of passage
LONG_SENTENCE, PARTICIPLE, TEST_NAME = "long sentence", "participle as a function name", "long test name"
COMPILED = {name: re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE) for name, phrase in PHRASES.items()}

IRREGULAR = re.compile(
    "begun|bought|broken|brought|built|caught|chosen|done|drawn|driven|fallen|felt|forgotten|found|fought|"
    "given|gone|grown|had|heard|held|hidden|kept|known|laid|led|left|lent|lost|made|meant|met|paid|risen|"
    "said|seen|sent|shown|sold|sought|spent|spoken|stood|struck|sworn|taken|taught|thought|thrown|told|"
    "torn|understood|worn|woven|written"
)
NOT_PARTICIPLES = re.compile(
    "embed|exceed|feed|need|proceed|seed|speed|succeed|nested|signed|sorted"
)  # verbs and adjectives


class Passage(NamedTuple):
    """Text as somebody reads it, and the line of the file where it begins."""

    kind: str
    line: int
    text: str


class Place(NamedTuple):
    """One occurrence of a pattern."""

    pattern: str
    file: str
    line: int
    excerpt: str


def python_passages(source: str) -> Iterator[Passage]:
    """Yield docstrings and messages, then comments; comments on consecutive lines are one passage."""
    nodes = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Passage("docstring", node.lineno, without_code(node.value.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield from message(node.lineno, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from message(node.lineno, node.value)
        else:
            nodes.extend(ast.iter_child_nodes(node))
    comments: list[Passage] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone, text = token.line.lstrip().startswith("#"), token.string.lstrip("#: ")
            if alone and comments and comments[-1].line + comments[-1].text.count("\n") + 1 == token.start[0]:
                comments[-1] = comments[-1]._replace(text=comments[-1].text + "\n" + text)
            else:
                comments.append(Passage("comment", token.start[0], text))
    yield from comments


def without_code(docstring: str) -> str:
    """Blank the lines of examples and of commands."""
    return re.sub(r"(?m)^ *(>>>|\.\.\.|python |mechdesign |\.\. ).*$", "", docstring)


# Programs in strings: JavaScript, C, SQL and Python have lines that end in ; or { or begin with a keyword.
PROGRAM = re.compile(r"(?m)[;{]\s*$|^\s*(#include |import |from [\w.]+ import |def |async |const |SELECT |CREATE )")


def message(line: int, text: str) -> Iterator[Passage]:
    """Yield a string that is long enough to be read as a sentence, and is not a program."""
    if len(re.findall(r"[a-z]{2,}", text)) >= 3 and not PROGRAM.search(text):
        yield Passage("message", line, text)


SCRIPT_TOKENS = re.compile(
    r"""((?://[^\n]*(?:\n\s*|\Z))+|/\*.*?\*/)|"((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`""", re.S
)


def script_passages(source: str) -> Iterator[Passage]:
    """Yield comments and strings of JavaScript or C."""
    for match in SCRIPT_TOKENS.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match[1] is not None:
            yield Passage("comment", line, re.sub(r"(?m)^\s*[/*]+|\*/$", "", match[1]))
        else:
            yield from message(line, re.sub(r"\$\{[^}]*\}", "x", match[2] or match[3] or match[4] or ""))


def page_passages(source: str) -> Iterator[Passage]:
    """Yield the paragraphs of a Markdown page without code, or the text of an HTML page without scripts."""
    for pattern in (r"(?ms)^\s*(```|:::).*?^\s*\1\s*$", r"(?s)<(script|style).*?</\1>", r"(?s)<!--.*?-->|<[^>]*>"):
        source = re.sub(pattern, lambda match: "\n" * match[0].count("\n"), source)
    source = re.sub(r"`[^`\n]*`|\$[^$\n]*\$", "x", source)
    for match in re.finditer(r"(?:.+\n?)+", source):
        yield Passage("page", source.count("\n", 0, match.start()) + 1, match[0])


READERS = {
    ".py": python_passages, ".pyi": python_passages, ".js": script_passages, ".mjs": script_passages,
    ".c": script_passages, ".md": page_passages, ".html": page_passages,
}  # fmt: skip


def sentences(passage: Passage) -> Iterator[tuple[int, str]]:
    """Split into sentences; items of lists, cells of tables and blocks of another indentation end one too."""
    line = passage.line
    end = r"(?<=[.!?])[\"')\]*]*\s+(?=[^a-z])|\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.|\S+ : ))|\s\|\s"
    position = 0
    for match in [*re.finditer(end, passage.text), None]:
        stop = match.start() if match else len(passage.text)
        yield line + passage.text.count("\n", 0, position), passage.text[position:stop]
        position = match.end() if match else stop


def function_names(suffix: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the name of each function with its line."""
    if suffix in (".py", ".pyi"):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.lineno, node.name
    elif suffix in (".js", ".mjs"):
        for match in re.finditer(r"\bfunction\s*\*?\s*(\w+)|\bconst (\w+) = (?:async )?(?:\(|\w+ =>)", source):
            yield source.count("\n", 0, match.start()) + 1, match[1] or match[2]


def is_participle(name: str) -> bool:
    """True if a name is one word that is the participle of a verb and nothing else."""
    word = name.strip("_")
    return not NOT_PARTICIPLES.fullmatch(word) and bool(IRREGULAR.fullmatch(word) or re.fullmatch("[a-z]+ed", word))


def places_in(file: str, source: str) -> Iterator[Place]:
    """Yield every occurrence of every pattern in the text of a file."""
    suffix = Path(file).suffix
    for passage in READERS[suffix](source):
        for name, pattern in COMPILED.items():
            for match in pattern.finditer(passage.text) if passage.kind == ONLY.get(name, passage.kind) else ():
                around = passage.text[max(0, match.start() - 40) : match.end() + 60]
                line = passage.line + passage.text.count("\n", 0, match.start())
                yield Place(name, file, line, " ".join(around.split()))
        for line, sentence in sentences(passage):
            words = len(re.findall(r"[A-Za-z][\w'-]*[\w']|\ba\b|\b\d[\d,.]*", sentence))
            if words > LONGEST_SENTENCE:
                yield Place(LONG_SENTENCE, file, line, f"{words} words: " + " ".join(sentence.split())[:100])
    for line, function in function_names(suffix, source):
        if is_participle(function):
            yield Place(PARTICIPLE, file, line, function)
        if function.startswith("test_") and len(function) > LONGEST_TEST_NAME:
            yield Place(TEST_NAME, file, line, function)


def files_under(folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the names and paths of all files of the tree in a folder, or of one file."""
    for place in PLACES:
        top = ROOT / place
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            file = path.relative_to(ROOT).as_posix()
            under = not folder or file == folder or file.startswith(folder.rstrip("/") + "/")
            hidden = any(part.startswith((".", "generated", "tutorials")) for part in Path(file).parts)
            if under and not hidden and path.suffix in READERS and file not in SAMPLES:
                yield file, path


def comment_lines(source: str) -> int:
    """The number of full-line comments in Python source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)


def figures(files: dict[str, str]) -> Iterator[str]:
    """Yield sentences on comments and test names in files by name."""
    python = {file: source for file, source in files.items() if file.endswith(".py")}
    comments = sum(comment_lines(source) for file, source in python.items() if file.startswith("mechdesign/"))
    yield f"{comments:6}  full-line comments in the package"
    names = (name for file, source in python.items() for _, name in function_names(".py", source))
    lengths = [len(name) for name in names if name.startswith("test_")]
    if lengths:
        yield f"{median(lengths):6g}  characters of a test name, median; {max(lengths)} at most"


def main() -> int:
    """Print counts, or places; 1 if a count is above its ceiling."""
    parser = argparse.ArgumentParser(description="Count patterns of unclear prose.")
    parser.add_argument("--places", metavar="PATTERN", help="list where a pattern occurs; all: every one")
    parser.add_argument("--under", metavar="FOLDER", default="", help="only this folder or file")
    options = parser.parse_args()
    files = {file: path.read_text(encoding="utf-8") for file, path in files_under(options.under)}
    places = [place for file, source in files.items() for place in places_in(file, source)]
    if options.places:
        for place in places:
            if options.places in ("all", place.pattern):
                print(f"{place.file}:{place.line}: {place.pattern}: {place.excerpt}")
        return 0
    counts = {pattern: sum(place.pattern == pattern for place in places) for pattern in CEILINGS}
    for pattern, count in counts.items():
        print(f"{count:6}  {'' if options.under else f'of {CEILINGS[pattern]:4} '} {pattern}")
    print(*figures(files), sep="\n")
    above = [pattern for pattern, count in counts.items() if count > CEILINGS[pattern] and not options.under]
    for pattern in above:
        print(f'more of "{pattern}" than before: python scripts/prose.py --places "{pattern}"', file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())

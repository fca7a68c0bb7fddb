"""`mechdesign verify`: prove or refuse the claim of a file."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    CrsOption,
    DiscOption,
    FileArgument,
    JsonOption,
    OverwriteOption,
    PeopleOption,
    VerboseOption,
)
from mechdesign.cli.parsing import check_disc_picture, draw_discs, parse_discs
from mechdesign.errors import InputError


def verify(
    file: FileArgument,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="Whether the lower bound of a factored file is priced again.")
    ] = True,
    disc: DiscOption = None,
    people: PeopleOption = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Picture of the shares of --disc by radius: .png, .pdf, .svg.")
    ] = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign verify rome.nc`.

    Prove or refuse the claim of a mechanism file, a session design or a compact map, from their integers alone.
    """
    from mechdesign.mechanism.claim import MechanismFile
    from mechdesign.mechanism.storage import load
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.verdict import verification_words
    from mechdesign.verification.verify import kind_of
    from mechdesign.verification.verify import verify as verify_file

    table = kind_of(file) is None
    if disc is None and people is not None:
        raise InputError("is for discs; pass --disc 564", field="people", value=people)
    inputs = InputOptions(columns, crs, people)
    inputs.refuse_unused_system(people)
    if disc is not None and not table:
        raise InputError("is for mechanism files (.nc)", field="disc", value=file)
    if output is not None:
        check_disc_picture(output, disc, overwrite=overwrite)
    printing.note_compiling()
    with printing.progress(f"verify {file.name}") as on_progress:
        result = verify_file(file, bound=bound, on_progress=on_progress)
    document, more = result.as_dict(), []
    stored = (
        MechanismFile.read(load(file)) if table and result.certified and (disc is not None or not as_json) else None
    )
    if disc is not None and stored is not None:
        from mechdesign.posteriors.audit import audit_mechanism_discs
        from mechdesign.posteriors.words import disc_words

        (radii, area), persons = parse_discs(disc, stored.domain.unit), inputs.people_of(stored.domain)
        audits = audit_mechanism_discs(stored.mechanism, radii, persons, centres=area)
        document["discs"] = [each.as_dict() for each in audits]
        draw_discs(document["discs"], output, overwrite=overwrite)
        more = list(disc_words(document["discs"], prior=people is None))
    words = verification_words(result, stored, verbose=verbose)
    printing.show(document, [*words, *more], as_json=as_json)
    if not result.certified:
        raise typer.Exit(1)

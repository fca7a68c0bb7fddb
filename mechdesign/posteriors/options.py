"""Options of commands about discs: --disc, --share and --people, and their effects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mechdesign.base.numbers import list_words, real_number
from mechdesign.base.units import LENGTHS, METRES, canonical_unit
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import ColumnsOption, CrsOption, OverwriteOption
from mechdesign.cli.parameters import epsilon_words
from mechdesign.cli.values import parse_box
from mechdesign.errors import InputError
from mechdesign.posteriors.shares import exact_fraction

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mechdesign.base.arrays import Vector
    from mechdesign.mechanism.mechanism_file import MechanismFile
    from mechdesign.posteriors.audit import DiscAudit
    from mechdesign.posteriors.limits import PosteriorCap
    from mechdesign.problem.problem import DesignProblem

_DISC_HELP = (
    "Radius of discs in the unit of the places, or with a unit as 1850ft. Several: 250,564,1000. R:area: any cells "
    "that are no larger in total."
)
_SHARE_HELP = "Maximum share of the probability in any disc of --disc after one report: 20%, 1/5 or 0.2."
DiscOption = Annotated[str | None, typer.Option("--disc", metavar="RADIUS", help=_DISC_HELP)]
ShareOption = Annotated[str | None, typer.Option("--share", metavar="SHARE", help=_SHARE_HELP)]
_PEOPLE_HELP = "CSV of latitude, longitude, population for --disc. Default: the prior."
# A file does not hold the forbidden area, so people are spread without it: next to water their numbers differ.
_VERIFY_PEOPLE_HELP = (
    "CSV of latitude, longitude, population for --disc. Default: the prior. A design with --forbidden or "
    "--people-per-disc spreads people otherwise, so shares may exceed its limit. Unless it had a --prior, the prior of "
    "the file has the numbers of the limit."
)
PeopleOption = Annotated[Path | None, typer.Option("--people", help=_PEOPLE_HELP)]
_PICTURE_HELP = "Picture of the shares of --disc by radius: .png, .pdf, .svg."
Report = tuple[dict[str, Any], list[str]]  # fields of a JSON document, and sentences


@dataclass(frozen=True, kw_only=True)
class LevelOptions:
    """--disc and --share of `mechdesign level`."""

    disc: DiscOption = None
    share: ShareOption = None

    @property
    def is_given(self) -> bool:
        return self.disc is not None or self.share is not None

    def level(self, unit: str) -> tuple[float, float]:
        from mechdesign.evaluation.privacy_radius import nats_of_disc_share

        if self.disc is None or self.share is None:
            raise InputError(
                "--disc and --share are required together; pass --disc 564 --share 20%", field="disc", value=self.disc
            )
        known = canonical_unit(unit)
        if known not in LENGTHS and known != "cell":
            remedy, value = "pass --within and --factor for values", f"{self.disc} {unit}"
            raise InputError("discs require a unit of length", field="disc", value=value, remedy=remedy)
        radii, area = parse_discs(self.disc, known)
        if len(radii) > 1 or area:
            remedy = "pass --disc 564"
            raise InputError("must be one radius, without :area", field="disc", value=self.disc, remedy=remedy)
        return radii[0], nats_of_disc_share(float(exact_fraction(self.share, "share"))) / radii[0]


@dataclass(frozen=True, kw_only=True)
class AreaOptions:
    """--disc and --share of `mechdesign area`, whose --people may be of its levels too."""

    disc: DiscOption = None
    share: ShareOption = None

    @property
    def has_disc(self) -> bool:
        return self.disc is not None

    def cap(self, unit: str) -> PosteriorCap | None:
        return _cap(self.disc, self.share, None, unit)


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """--disc, --share and --people of `mechdesign solve`."""

    disc: DiscOption = None
    share: ShareOption = None
    people: PeopleOption = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        return (self.people,)

    def limit(self, problem: DesignProblem, inputs: InputOptions) -> PosteriorCap | None:
        cap = _cap(self.disc, self.share, self.people, problem.domain.unit)
        return None if cap is None else replace(cap, people=_people(self.people, problem, inputs))

    def refuse(self, program: str) -> InputError:
        return InputError("requires the optimal program", field="disc", value=program)


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """--disc and --people of `mechdesign audit`."""

    disc: DiscOption = None
    people: PeopleOption = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        return (self.people,)

    @property
    def rule_parameters(self) -> tuple[str, ...]:
        return () if self.disc is None else ("box", "within", "factor", "epsilon")

    def radii(self) -> list[float]:
        radii, area = ([], None) if self.disc is None else parse_discs(self.disc, "m")
        if area:
            raise InputError("blurs support only discs; leave out :area", field="disc", value=self.disc)
        return radii

    def check_picture(self, path: Path, *, overwrite: bool) -> None:
        _check_picture(path, self.disc, overwrite=overwrite)

    def check_table(self) -> None:
        _check_people(self.disc, self.people)

    def audit_rule(
        self, rule: str, words: Mapping[str, str], inputs: InputOptions, picture: Path | None, *, overwrite: bool
    ) -> Report | None:
        from mechdesign.output.text_tables import note
        from mechdesign.posteriors.audit import RULE_DISC_AUDITOR
        from mechdesign.posteriors.words import disc_words

        if self.people is None and "box" not in words:
            return None
        if self.disc is None or self.people is None or "box" not in words:
            message = "discs of a rule need people and a window; pass --disc 564 --people FILE --box W,S,E,N"
            raise InputError(message, field="disc", value=self.disc)
        parameters = dict(words)
        box = parameters.pop("box")
        level = epsilon_words(parameters, radius=True).get("epsilon")
        radii, area = parse_discs(self.disc, "m")
        if area:
            raise InputError("rules support only discs; leave out :area", field="disc", value=self.disc)
        document = RULE_DISC_AUDITOR.get()(
            rule,
            self.people,
            parse_box(box),
            radii,
            epsilon=None if level is None else float(level),
            columns=inputs.columns_of(*PEOPLE),
            crs=inputs.crs,
            on_note=note,
        )
        _draw(document["discs"], picture, overwrite=overwrite)
        return document, list(disc_words(document["discs"]))

    def audit_table(
        self,
        entries: ArrayLike,
        problem: DesignProblem,
        inputs: InputOptions,
        picture: Path | None,
        *,
        overwrite: bool,
    ) -> Report:
        from mechdesign.posteriors.audit import audit_discs

        if self.disc is None:
            return {}, []
        people = _people(self.people, problem, inputs)
        weight = problem.prior_array if people is None else people
        radii, area = parse_discs(self.disc, problem.domain.unit)
        audits = [audit_discs(entries, problem.domain, weight, radius, centres=area) for radius in radii]
        return _report(audits, picture, overwrite=overwrite, by_prior=people is None)


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """--disc and --people of `mechdesign verify`, and the options that apply to them."""

    disc: DiscOption = None
    people: Annotated[Path | None, typer.Option("--people", help=_VERIFY_PEOPLE_HELP)] = None
    columns: ColumnsOption = None
    crs: CrsOption = None
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_PICTURE_HELP)] = None
    overwrite: OverwriteOption = False

    @property
    def is_given(self) -> bool:
        return self.disc is not None

    def check(self, file: Path, *, is_table: bool) -> None:
        _check_people(self.disc, self.people)
        self._inputs.refuse_unused_system(self.people)
        if self.disc is not None and not is_table:
            raise InputError("applies only to mechanism files (.nc)", field="disc", value=file)
        if self.output is not None:
            _check_picture(self.output, self.disc, overwrite=self.overwrite)

    def report(self, stored: MechanismFile) -> Report:
        from mechdesign.posteriors.audit import audit_mechanism_discs

        radii, area = parse_discs(self.disc or "", stored.domain.unit)
        people = _people(self.people, stored, self._inputs)
        audits = audit_mechanism_discs(stored.mechanism, radii, people, centres=area)
        return _report(audits, self.output, overwrite=self.overwrite, by_prior=people is None)

    @property
    def _inputs(self) -> InputOptions:
        return InputOptions(self.columns, self.crs)


def parse_discs(words: str, unit: str) -> tuple[list[float], Literal["area"] | None]:
    """The radii of --disc R,R in `unit`, if all or none name a unit of length themselves; and "area" after R,R:area."""
    from mechdesign.base.validation import check_positive

    lengths = words.strip().removesuffix(":area")
    try:
        listed = list_words(re.sub(r"(?<=[0-9.])\s+(?=[A-Za-z])", "", lengths))  # 1850 ft
        split = [re.fullmatch(r"(.*?)([A-Za-z]*)", word, re.S) for word in listed]
        radii = [(real_number(parts[1]), parts[2]) for parts in split if parts]
    except ValueError as error:
        remedy = None if "several" in str(error) else "write lengths such as 564, 1850ft or 250,564,1000"
        raise InputError(str(error), field="disc", value=words, remedy=remedy) from error
    if len({bool(named) for _, named in radii}) > 1:
        remedy = "name the unit of all of them, as 250m,1850ft, or of none"
        raise InputError("has radii with a unit and radii without", field="disc", value=words, remedy=remedy)
    centres: Literal["area"] | None = None if lengths == words.strip() else "area"
    return [check_positive(_in_unit(radius, named, unit), "disc") for radius, named in radii], centres


def _in_unit(radius: float, named: str, unit: str) -> float:
    length_unit = canonical_unit(named, "disc") if named else unit
    if length_unit == unit:
        return radius
    if not {length_unit, unit} <= set(METRES):
        raise InputError(f"is not a length in {unit}", field="disc", value=f"{radius:g}{named}")
    return radius * METRES[length_unit] / METRES[unit]


def _cap(disc: str | None, share: str | None, people: Path | None, unit: str) -> PosteriorCap | None:
    from mechdesign.posteriors.limits import PosteriorCap

    if disc is None or share is None:
        if (disc, share, people) != (None, None, None):
            raise InputError(
                "--disc and --share are required together; pass --disc 564 --share 20%", field="disc", value=disc
            )
        return None
    radii, area = parse_discs(disc, unit)
    if len(radii) > 1:
        raise InputError("must be one radius", field="disc", value=disc)
    return PosteriorCap(radius=radii[0], share=share, centres=area or "anywhere")


def _people(path: Path | None, source: DesignProblem | MechanismFile, inputs: InputOptions) -> Vector | None:
    return replace(inputs, people=path).people_of(source.domain)


def _check_people(disc: str | None, people: Path | None) -> None:
    if disc is None and people is not None:
        raise InputError("applies only to discs; pass --disc 564", field="people", value=people)


def _check_picture(path: Path, disc: str | None, *, overwrite: bool) -> None:
    from mechdesign.output.export import PICTURE_WRITER

    PICTURE_WRITER.get().check_target(path, overwrite=overwrite)
    if disc is None:
        raise InputError("a picture requires discs; pass --disc 250,564,1000", field="output", value=path.name)


def _report(audits: Sequence[DiscAudit], picture: Path | None, *, overwrite: bool, by_prior: bool) -> Report:
    from mechdesign.posteriors.words import disc_words

    documents = [audit.as_dict() for audit in audits]
    _draw(documents, picture, overwrite=overwrite)
    return {"discs": documents}, list(disc_words(documents, prior=by_prior))


def _draw(audits: Sequence[Mapping[str, Any]], picture: Path | None, *, overwrite: bool) -> None:
    if picture is not None:
        from mechdesign.output.export import PICTURE_WRITER
        from mechdesign.posteriors.picture import plot_discs

        PICTURE_WRITER.get().save(plot_discs(audits), picture, overwrite=overwrite)

"""`mechdesign problems`: what is shipped, read without running it."""

from mechdesign.cli.options import JsonOption


def problems(as_json: JsonOption = False) -> None:
    """List the shipped problems and their parameters."""
    from mechdesign.output.terminal import printing
    from mechdesign.setting.problems.shipped import shipped_problems

    listed = shipped_problems()
    if as_json:
        printing.print_json(
            [
                {"problem": p.name, "summary": p.summary, "parameters": p.parameters, "knobs": p.parameters}
                for p in listed
            ]
        )
        return
    for entry in listed:
        parameters = (f"--{name.replace('_', '-')} {value}" for name, value in entry.parameters.items())
        printing.print_entry(entry.name, entry.summary, parameters)
    printing.say("Solve one with: mechdesign solve NAME --PARAMETER VALUE")

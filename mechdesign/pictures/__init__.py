"""Pictures of mechanisms, sweeps and diagnoses; `md.plot` is their public face."""

__all__: list[str] = []

"""Entries that `blurs` adds to the core. Needs: none. With: pictures."""

TABLES = {
    "command options": {"audit blur": "mechdesign.blurs.options:BlurOptions"},
}

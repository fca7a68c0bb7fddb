"""Entries that `blurs` adds to the core. Needs: none. With: geo, pictures, posteriors."""

TABLES = {
    "command options": {"audit blur": "mechdesign.blurs.options:BlurOptions"},
    "roles": {
        "discs": "mechdesign.blurs.disc_audit:audit_rule_discs",
        "rules": "mechdesign.blurs.rules:RULE_AUDITOR",
    },
}

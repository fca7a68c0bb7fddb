"""Additions of `sessions` to the core. Needs: geo. With: web."""

TABLES = {
    "commands": {"session": "mechdesign.sessions.commands:session"},
    "kinds": {"mechdesign/session-design": "mechdesign.sessions.verify:DESIGN"},
    "clients": {"SessionDesign": "mechdesign.sessions.client:session_contents"},
}

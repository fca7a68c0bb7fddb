"""Adds `web` to the core. Needs: none. With: pictures."""

TABLES = {
    "exporters": {
        ".html": "mechdesign.web.commands:PAGE",
        ".htm": "mechdesign.web.commands:PAGE",
        "designer.html": "mechdesign.web.commands:DESIGNER",
        "designer.htm": "mechdesign.web.commands:DESIGNER",
        "": "mechdesign.web.commands:CLIENT",
    },
    "roles": {"page": "mechdesign.web.page:RESULT_PAGES"},
}

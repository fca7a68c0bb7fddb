"""What `web` adds to the core. Needs: none. With: none."""

TABLES = {
    "commands": {
        "page": "mechdesign.web.commands:page",
        "client": "mechdesign.web.commands:client",
    },
    "providers": {"page": "mechdesign.web.page"},
}

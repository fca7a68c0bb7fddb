"""The folder that an app ships: a binary table, the JavaScript that draws from it, and what to say of it."""

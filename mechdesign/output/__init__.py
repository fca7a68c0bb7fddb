"""What people read: tables, pictures, terminal, export. Proves nothing, and prints only what was proved."""

"""What people read: verification, comparison, export."""

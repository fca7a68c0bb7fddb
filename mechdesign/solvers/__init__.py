"""How programs are solved. A solver knows no paper."""

"""How people move, as a public model: hidden states with a place each and their transitions. No privacy rests on it."""

"""What the core and other capabilities ask of claims between positions, by name."""

from mechdesign.positions.patches import rounding_length as rounding_length
from mechdesign.positions.patches import stored_claim as stored_claim
from mechdesign.positions.protection import protection as protection
from mechdesign.positions.solve import operations as operations

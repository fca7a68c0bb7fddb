"""Reports along a trace: rules beside `Clock` and `Risk`, models of movement, files of session designs, smoothing."""

from mechdesign.mechanism.session.belief import Belief, best_places
from mechdesign.mechanism.session.design_files import load_design, save_design
from mechdesign.mechanism.session.moved import MovedTest
from mechdesign.mechanism.session.rules import Ask, Rule
from mechdesign.mechanism.session.session import Account, Estimate
from mechdesign.mechanism.session.smoothing import smoothed
from mechdesign.mechanism.session.transcript import Step, Transcript
from mechdesign.setting.movement.home_away import HomeAway
from mechdesign.setting.movement.movement import Chain, Movement
from mechdesign.setting.movement.transitions import Transitions
from mechdesign.setting.movement.walk import Walk
from mechdesign.utility.traces.fit import fit_home_away
from mechdesign.utility.traces.propose import Proposal, propose
from mechdesign.utility.traces.tables import loss_after, report_table, state_table
from mechdesign.utility.traces.walks import Walks, walks

__all__ = [
    "Account",
    "Ask",
    "Belief",
    "Chain",
    "Estimate",
    "HomeAway",
    "MovedTest",
    "Movement",
    "Proposal",
    "Rule",
    "Step",
    "Transcript",
    "Transitions",
    "Walk",
    "Walks",
    "best_places",
    "fit_home_away",
    "load_design",
    "loss_after",
    "propose",
    "report_table",
    "save_design",
    "smoothed",
    "state_table",
    "walks",
]
